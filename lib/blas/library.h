/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libstreamgemm that the dispatcher calls: found by name when the device is opened. */
#ifndef STREAMGEMM_BLAS_LIBRARY_H
#define STREAMGEMM_BLAS_LIBRARY_H

#include <streamgemm/streamgemm.h>

#define SG_BLAS_LIBRARY_FUNCTIONS(each)                                                                         \
  each(sg_context_create) each(sg_context_release) each(sg_context_device) each(sg_context_memory_kind)         \
      each(sg_gemm_async) each(sg_triangular_async) each(sg_symmetric_async) each(sg_rank_k_async)              \
          each(sg_copy_2d_async) each(sg_custom_async) each(sg_job_wait) each(sg_job_release)                   \
              each(sg_job_get_statistics) each(sg_buffer_create) each(sg_buffer_retain) each(sg_buffer_release) \
                  each(sg_buffer_data) each(sg_plan_create) each(sg_plan_get_prediction) each(sg_plan_release)  \
                      each(sg_last_error_message)

typedef struct sg_blas_library_functions {
#define SG_BLAS_POINTER(name) __typeof__(&name) name;
  SG_BLAS_LIBRARY_FUNCTIONS(SG_BLAS_POINTER)
#undef SG_BLAS_POINTER
} sg_blas_library_functions;

/* Valid once the device is open. */
extern sg_blas_library_functions sg_blas_streamgemm;

#endif
