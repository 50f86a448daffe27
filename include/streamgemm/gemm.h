/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gemm.h
 * @brief GEMM: C = activation(alpha * op(A) * op(B) + beta * C + bias), one, batched or grouped.
 *
 * op(A) is m x k, op(B) is k x n, C is m x n; the sizes follow from the views and must agree. A and B have the same type.
 * C has that type too, or f32 for f16 and bf16 operands, i32 for i8 operands, and f32, f16 or bf16 for f8 operands. (f8
 * operands are both e4m3 or both e5m2; the product of their scales goes into alpha.)
 *
 * BLAS semantics: beta == 0 never reads C; alpha == 0 or k == 0 never reads A and B; otherwise NaN and Inf propagate. Empty
 * results succeed and do nothing. C may not overlap A or B, and items of C may not overlap each other. The same call on the
 * same device gives the same bits each time; sg_gemm and sg_gemm_async may differ in the order of additions.
 *
 * Sums are kept in the accumulator's type: the type of C, but f32 if C is f16 or bf16. alpha and beta are rounded to this
 * type before the rules above apply, on every device (in f32 an alpha of 1e-300 is 0: A and B are not read). A finite alpha
 * or beta beyond the range of the type is SG_STATUS_INVALID_ARGUMENT, and so is one that is not a 32-bit integer if C is
 * i32. Real results ignore imaginary parts. Integer sums, and their multiples by alpha and beta, are computed modulo 2^32:
 * a result outside the range of i32 wraps silently.
 *
 * The bias, a vector of C's type, and the activation are optional. They are applied once, in the accumulator, to the whole
 * sum, which is then rounded once to C's type; also if alpha == 0 or k == 0. A GEMM that is computed in parts, or from host
 * memory, gives the same result. Integer results support a bias and ReLU, complex results a bias (otherwise
 * SG_STATUS_UNSUPPORTED). GELU is evaluated to within 8 units of the accumulator's rounding of x, and for
 * 16-bit operands and a bf16 C on cuda with a tanh of 11 bits, cuBLASLt's, which rounding to bf16 hides but for values near 0. C may not overlap the
 * bias.
 *
 * A, B and C may differ in layout, except that a complex op C needs the operand in C's layout (SG_STATUS_UNSUPPORTED). Each
 * operand may be in pageable, pinned or device memory; the library determines which.
 */
#ifndef STREAMGEMM_GEMM_H
#define STREAMGEMM_GEMM_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Descriptor of one GEMM, or of a batch. */
typedef struct sg_gemm_desc {
  size_t struct_size; /**< sizeof(sg_gemm_desc), set by SG_GEMM_DESC_INIT. */
  sg_matrix a;        /**< [in] A as stored; read only. With a_array its data pointer is ignored. */
  sg_matrix b;        /**< [in] B as stored; read only. With b_array its data pointer is ignored. */
  sg_matrix c;        /**< [inout] C. With c_array its data pointer is ignored. */
  sg_transpose op_a;         /**< Operation on A. */
  sg_transpose op_b;         /**< Operation on B. */
  sg_compute compute; /**< The least accurate arithmetic allowed. Default: exact. */
  uint32_t reserved;  /**< 0. */
  sg_scalar alpha;    /**< Factor of op(A) * op(B), rounded to the accumulator's type. SG_GEMM_DESC_INIT sets 1. */
  sg_scalar beta;     /**< Factor of C, rounded likewise; 0 never reads C. SG_GEMM_DESC_INIT sets 0. */
  int64_t batch;      /**< Items of the batch; 0 means 1. */
  int64_t stride_a;   /**< Elements from one item's A to the next; 0 shares A. Used if batch > 1 without a_array. */
  int64_t stride_b;   /**< Elements from one item's B to the next; 0 shares B. */
  int64_t stride_c;   /**< Elements from one item's C to the next; items may not overlap. */
  const void *const *a_array; /**< `batch` pointers to the items of A, or NULL. Read during the call only. */
  const void *const *b_array; /**< The same for B. */
  void *const *c_array;       /**< The same for C. */
  const void *bias;     /**< [in optional] First value of the bias, contiguous, aligned to its component's size; NULL: none.
                             Since 0.2. */
  int64_t stride_bias;  /**< Values from one item's bias to the next, also with pointer arrays; 0: one for all items.
                             Since 0.2. */
  sg_bias bias_shape; /**< Used with a bias only. Rows and columns of the view of C, whatever its layout. Since 0.2. */
  sg_activation activation; /**< Default: none. Since 0.2. */
} sg_gemm_desc;

/** Initial value of an sg_gemm_desc: alpha 1, beta 0, no batch, no bias, no activation. */
#define SG_GEMM_DESC_INIT                                                                                       \
  {                                                                                                             \
    sizeof(sg_gemm_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, SG_MATRIX_INIT, SG_TRANSPOSE_N, SG_TRANSPOSE_N,       \
        SG_COMPUTE_EXACT, 0, {1.0, 0.0}, {0.0, 0.0}, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 0, SG_BIAS_PER_COLUMN, \
        SG_ACTIVATION_NONE                                                                                      \
  }

/**
 * Submits a GEMM and returns at once.
 * @param context The context that runs it.
 * @param desc The GEMM; read during the call only. The caller owns the matrices; job.h states their lifetime.
 * @param submit Order, priority, completion queue, plan; NULL for the defaults. Read during the call only.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL
 * if the caller does not use the job.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED,
 * SG_STATUS_OUT_OF_MEMORY, SG_STATUS_BUSY (the context's job limit), SG_STATUS_SHUTDOWN: not submitted, nothing is accessed.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.1.
 */
SG_API sg_status sg_gemm_async(sg_context *context, const sg_gemm_desc *desc, const sg_submit *submit, sg_job **out_job);

/**
 * Submits a GEMM and waits for it: sg_gemm_async and sg_job_wait in one. Uses 64 KiB of the caller's stack on the cpu.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_gemm(sg_context *context, const sg_gemm_desc *desc, const sg_submit *submit);

/**
 * Submits GEMMs of different shapes, types and scalars as one job.
 * @param descs `count` >= 1 GEMMs. The C of one may not overlap operands of another (SG_STATUS_INVALID_ARGUMENT).
 * @param count Number of GEMMs.
 * @return As sg_gemm_async; its rules for the other arguments apply.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.1.
 */
SG_API sg_status sg_gemm_grouped_async(sg_context *context, const sg_gemm_desc *descs, int32_t count,
                                       const sg_submit *submit, sg_job **out_job);

/**
 * Submits GEMMs and waits for them: sg_gemm_grouped_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_gemm_grouped(sg_context *context, const sg_gemm_desc *descs, int32_t count, const sg_submit *submit);

/**
 * BLAS-shaped single precision GEMM: C (m x n) = alpha * op(A) * op(B) + beta * C, all three in `layout`.
 * @return As sg_gemm_async. lda, ldb, ldc are in elements and are never 0 here.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.1.
 */
SG_API sg_status sg_sgemm_async(sg_context *context, sg_layout layout, sg_transpose op_a, sg_transpose op_b, int64_t m, int64_t n,
                                int64_t k, float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                                float beta, float *c, int64_t ldc, const sg_submit *submit, sg_job **out_job);

/**
 * sg_sgemm_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_sgemm(sg_context *context, sg_layout layout, sg_transpose op_a, sg_transpose op_b, int64_t m, int64_t n,
                          int64_t k, float alpha, const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                          float *c, int64_t ldc, const sg_submit *submit);

/**
 * BLAS-shaped double precision GEMM. As sg_sgemm_async.
 * @return As sg_gemm_async. Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.1.
 */
SG_API sg_status sg_dgemm_async(sg_context *context, sg_layout layout, sg_transpose op_a, sg_transpose op_b, int64_t m, int64_t n,
                                int64_t k, double alpha, const double *a, int64_t lda, const double *b, int64_t ldb,
                                double beta, double *c, int64_t ldc, const sg_submit *submit, sg_job **out_job);

/**
 * sg_dgemm_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_dgemm(sg_context *context, sg_layout layout, sg_transpose op_a, sg_transpose op_b, int64_t m, int64_t n,
                          int64_t k, double alpha, const double *a, int64_t lda, const double *b, int64_t ldb, double beta,
                          double *c, int64_t ldc, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_GEMM_H */
