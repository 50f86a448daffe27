/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of level 3 as operations of libstreamgemm. */
#ifndef STREAMGEMM_BLAS_OPERATIONS_H
#define STREAMGEMM_BLAS_OPERATIONS_H

#include <stdbool.h>
#include <streamgemm/streamgemm.h>

#include "dispatcher.h"
#include "settings.h"

/* The matrices are those of the description, which is therefore not copied. */
typedef struct sg_blas_operation {
  sg_operation which;
  union {
    sg_gemm_desc gemm;
    sg_triangular_desc triangular;
    sg_symmetric_desc symmetric;
    sg_rank_k_desc rank_k;
  } desc;
  const sg_gemm_desc *descs; /* of a batch, which then is described by them alone; A, B and C are the first ones */
  int32_t count;             /* of descs; 0: no batch */
  sg_matrix *a, *b, *c;      /* C: the result; B: NULL, there is none beside it */
  unsigned part_of_a;        /* as in sg_blas_lines */
  bool reads_c;
} sg_blas_operation;

sg_dtype sg_blas_type_of(char type);
size_t sg_blas_size_of(sg_dtype type);
/* Whether one operation computes the call: gemmt has none, and the others compute in f32 what GEMMs may compute in a
   shorter type (SG_BLAS_COMPUTE). */
bool sg_blas_is_operation(const sg_blas_call *call, const sg_blas_settings *settings);
void sg_blas_describe_gemm(const sg_blas_call *call, const sg_blas_settings *settings, sg_gemm_desc *desc);
/* Describes GEMMs in either layout, and any other call in column-major form. */
void sg_blas_describe(const sg_blas_call *call, const sg_blas_settings *settings, sg_blas_operation *out);
/* Submits it; the label is the job's. */
sg_status sg_blas_submit(const sg_blas_operation *operation, sg_context *on, const sg_submit *submit, sg_job **out_job);

#endif
