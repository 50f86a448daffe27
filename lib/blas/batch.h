/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_batch and gemm_batch_strided, which OpenBLAS and MKL have beyond the reference: groups of GEMMs of one shape
   each. The device computes all of them as one operation. */
#ifndef STREAMGEMM_BLAS_BATCH_H
#define STREAMGEMM_BLAS_BATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <streamgemm/streamgemm.h>

#include "dispatcher.h"
#include "settings.h"

/* The addresses of a call's arguments; NULL: it has none of that name. Letters, sizes, leading dimensions and scalars
   are arrays with one for each group. */
typedef struct sg_blas_arguments {
  const void *order; /* of CBLAS */
  const void *transa, *transb, *m, *n, *k, *alpha;
  const void *a, *lda, *stridea, *b, *ldb, *strideb, *beta, *c, *ldc,
      *stridec;      /* strides: then a, b and c are the first matrices, else arrays of the addresses of all */
  const void *count; /* of groups; with strides: of GEMMs */
  const void *sizes; /* GEMMs of each group; with strides NULL: there is one group */
} sg_blas_arguments;

typedef struct sg_blas_batch {
  const sg_blas_arguments *given;
  sg_gemm_desc *descs; /* room for one of each group */
} sg_blas_batch;

/* Computes a call of an exported name, on the device or by the CPU BLAS. */
void sg_blas_batched(sg_blas_entry *entry, const sg_blas_arguments *given);
/* Whether the CPU BLAS has no such function: its gemm computes them one by one. */
bool sg_blas_has_no_batch(const sg_blas_call *call);
/* The same by the CPU BLAS's gemm, which reports the first group that is not valid; then nothing is computed. */
void sg_blas_batch_by_gemm(const sg_blas_call *call);
/* As sg_blas_check. */
sg_blas_reason sg_blas_check_batch(const sg_blas_call *call);
/* Writes the descriptions; returns how many there are: groups without elements have none. */
int32_t sg_blas_describe_batch(const sg_blas_call *call, const sg_blas_settings *settings);
/* A hash of all that the plan of the descriptions depends on but the memory of the operands. */
uint64_t sg_blas_hash_of_batch(const sg_blas_call *call, const sg_blas_settings *settings);

#endif
