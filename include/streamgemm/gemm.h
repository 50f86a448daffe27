/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gemm.h
 * @brief Matrix products: C = activation(alpha * op(A) * op(B) + beta * C + bias), one, batched or grouped.
 *
 * op(A) is m x k, op(B) is k x n, C is m x n; the sizes follow from the views and must agree. A and B have one type, C
 * the same, or f32 for f16 and bf16 operands, or i32 for i8 operands, or f32, f16 or bf16 for f8 operands. (Those are both
 * e4m3 or both e5m2; a scale of each goes into alpha, as their product.) BLAS semantics: beta == 0 never reads C; alpha ==
 * 0 or k == 0 never reads A and B; otherwise NaN and Inf propagate. Empty results succeed and do nothing. C may not
 * overlap A or B, nor one item's C another's. The same call on the same device gives the same bits each time.
 *
 * Sums are kept in the accumulator's type: that of C, but f32 where C is f16 or bf16. alpha and beta are rounded to the
 * accumulator's type before these rules apply, on every device (in f32 an alpha of 1e-300 is 0: A and B are not read). A
 * finite alpha or beta beyond that type's range is SG_STATUS_INVALID_ARGUMENT, and so is one that is not an integer of 32
 * bits where C is i32. Real results ignore the imaginary parts. Integer sums, and alpha and beta times them, are computed
 * modulo 2^32: a result outside of the range of i32 wraps, silently.
 *
 * The bias, a vector of C's type, and the activation are optional. They are applied in the accumulator, once, to the
 * whole sum, which is then rounded to C's type once; also where alpha == 0 or k == 0. A device that computes the
 * product in parts, or from host memory, gives the same. Integer results take a bias and ReLU, complex ones a bias
 * (SG_STATUS_UNSUPPORTED). GELU is evaluated to within 8 units of the accumulator's rounding of x. C may not overlap
 * the bias.
 *
 * A, B and C may differ in layout, except that a complex op C needs the operand in C's layout (SG_STATUS_UNSUPPORTED).
 * Operands may lie in pageable, pinned or device memory, each its own; the library finds out.
 */
#ifndef STREAMGEMM_GEMM_H
#define STREAMGEMM_GEMM_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** A product. */
typedef struct sg_gemm_desc {
  size_t struct_size; /**< sizeof(sg_gemm_desc), set by SG_GEMM_DESC_INIT. */
  sg_matrix a;        /**< A as stored; only read. With a_array, its data is ignored. */
  sg_matrix b;        /**< B as stored; only read. With b_array, its data is ignored. */
  sg_matrix c;        /**< C. With c_array, its data is ignored. */
  sg_op op_a;         /**< What is applied to A.. */
  sg_op op_b;         /**< What is applied to B. */
  sg_compute compute; /**< The least accurate arithmetic allowed. Default: exact. */
  uint32_t reserved;  /**< 0. */
  sg_scalar alpha;    /**< Rounded to the accumulator's type. SG_GEMM_DESC_INIT sets 1. */
  sg_scalar beta;     /**< Rounded to the accumulator's type. SG_GEMM_DESC_INIT sets 0. */
  int64_t batch;      /**< Items; 0 means 1 (an empty batch is not submitted). */
  int64_t stride_a;   /**< Elements from one item's A to the next; 0 shares A. Used when batch > 1 without a_array. */
  int64_t stride_b;   /**< The same for B. */
  int64_t stride_c;   /**< The same for C; large enough that items do not overlap. */
  void *const *a_array; /**< `batch` pointers to the items of A, or NULL. Read during the call only. */
  void *const *b_array; /**< The same for B. */
  void *const *c_array; /**< The same for C. */
  const void *bias;     /**< Its first value, contiguous, aligned to its component's size; or NULL: none. Only read. */
  int64_t stride_bias;  /**< Values from one item's bias to the next, with pointer arrays too; 0: one for all items. */
  sg_bias bias_shape; /**< Used with a bias only. Rows and columns are C's as its view has them, whatever its layout. */
  sg_activation activation; /**< Default: none. */
} sg_gemm_desc;

/** Initial value of an sg_gemm_desc: alpha 1, beta 0, no batch, no bias, no activation. */
#define SG_GEMM_DESC_INIT                                                                                       \
  {                                                                                                             \
    sizeof(sg_gemm_desc), {NULL, 0, 0, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR},                                   \
        {NULL, 0, 0, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR}, {NULL, 0, 0, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR}, \
        SG_OP_N, SG_OP_N, SG_COMPUTE_EXACT, 0, {1.0, 0.0}, {0.0, 0.0}, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 0,   \
        SG_BIAS_PER_COLUMN, SG_ACTIVATION_NONE                                                                  \
  }

/**
 * Submits a product and returns at once.
 * @param context Where to run it.
 * @param desc The product; read during the call only. The matrices stay the caller's: see job.h on their lifetime.
 * @param submit Order, priority, completion queue, plan; NULL for all defaults. Read during the call only.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. NULL may be passed
 * when nobody will ask for the job.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED,
 * SG_STATUS_OUT_OF_MEMORY, SG_STATUS_BUSY (the context's job limit), SG_STATUS_SHUTDOWN: not submitted, nothing is touched.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.1.
 */
SG_API sg_status sg_gemm_async(sg_context *context, const sg_gemm_desc *desc, const sg_submit *submit, sg_job **out_job);

/**
 * Submits a product and waits for it: sg_gemm_async and sg_job_wait in one. Needs 64 KiB of the caller's stack on the cpu.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_gemm(sg_context *context, const sg_gemm_desc *desc, const sg_submit *submit);

/**
 * Submits products of different shapes, types and scalars as one job.
 * @param descs `count` >= 1 products without overlap of one's C with another's operands (SG_STATUS_INVALID_ARGUMENT).
 * @param count Number of products.
 * @return As sg_gemm_async, whose rules for the other arguments hold too.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.1.
 */
SG_API sg_status sg_gemm_grouped_async(sg_context *context, const sg_gemm_desc *descs, int32_t count,
                                       const sg_submit *submit, sg_job **out_job);

/**
 * BLAS-shaped single precision product: C (m x n) = alpha * op(A) * op(B) + beta * C, all three in `layout`.
 * @return As sg_gemm_async. lda, ldb, ldc are in elements and are never 0 here.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.1.
 */
SG_API sg_status sg_sgemm_async(sg_context *context, sg_layout layout, sg_op op_a, sg_op op_b, int64_t m, int64_t n,
                                int64_t k, float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                                float beta, float *c, int64_t ldc, const sg_submit *submit, sg_job **out_job);

/**
 * BLAS-shaped double precision product. As sg_sgemm_async.
 * @return As sg_gemm_async. Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.1.
 */
SG_API sg_status sg_dgemm_async(sg_context *context, sg_layout layout, sg_op op_a, sg_op op_b, int64_t m, int64_t n,
                                int64_t k, double alpha, const double *a, int64_t lda, const double *b, int64_t ldb,
                                double beta, double *c, int64_t ldc, const sg_submit *submit, sg_job **out_job);

SG_END_DECLS

#endif /* STREAMGEMM_GEMM_H */
