/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file symmetric.h
 * @brief Symmetric and Hermitian matrices: products, BLAS's symm and hemm, and updates, BLAS's syrk, herk, syr2k and her2k.
 *
 * The types are f64, f32, c64 and c128; the arithmetic is in the operands' type, with the rules of gemm.h for alpha and beta: beta == 0
 * never reads C, alpha == 0 (of an update k == 0 too) never reads A and B. The matrices are in any memory (memory.h). The result
 * may not overlap another operand.
 *
 * Of a symmetric or Hermitian matrix one triangle is used, whose other one may hold anything. Of the A of a product the other triangle
 * has no effect, but all of A must be readable. Of the C of an update the other triangle is neither read nor written. For the order of
 * jobs, and for what may not overlap, each matrix counts as a whole. Operands in host memory may be larger than the device's memory:
 * they then cross the link in tiles, and so they do where this is faster.
 *
 * Below, ' is the transpose, and of a Hermitian matrix the conjugate transpose. The formulas are those of the BLAS (Dongarra et al.,
 * A Set of Level 3 Basic Linear Algebra Subprograms, ACM TOMS 16, 1990).
 */
#ifndef STREAMGEMM_SYMMETRIC_H
#define STREAMGEMM_SYMMETRIC_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/**
 * Descriptor of a product with a symmetric or Hermitian matrix: C = alpha * A * B + beta * C, or alpha * B * A + beta * C.
 *
 * A is square, with as many rows as C has on the left, and as many as C has columns on the right. B and C have the same shape. Of
 * complex types B has C's layout, and so has a Hermitian A (otherwise SG_STATUS_UNSUPPORTED). Since 0.2.
 */
typedef struct sg_symmetric_desc {
  size_t struct_size;   /**< sizeof(sg_symmetric_desc), set by SG_SYMMETRIC_DESC_INIT. */
  sg_matrix a;          /**< [in: order x order] A, of which one triangle is used; read only. If alpha is 0, its data pointer is ignored. */
  sg_matrix b;          /**< [in: rows x cols] B; read only. If alpha is 0, its data pointer is ignored. */
  sg_matrix c;          /**< [inout: rows x cols] C. */
  sg_side side;         /**< The side on which A stands. Default: left. */
  sg_triangle triangle; /**< The triangle of A. Default: lower. */
  sg_symmetry symmetry; /**< Of A. Default: symmetric. */
  uint32_t reserved;    /**< 0. */
  sg_scalar alpha;      /**< Rounded to the operands' type. SG_SYMMETRIC_DESC_INIT sets 1. */
  sg_scalar beta;       /**< Rounded likewise; 0 never reads C. SG_SYMMETRIC_DESC_INIT sets 0. */
} sg_symmetric_desc;

/** Initial value of an sg_symmetric_desc: the lower triangle on the left, alpha 1, beta 0. */
#define SG_SYMMETRIC_DESC_INIT                                                                                  \
  {                                                                                                             \
    sizeof(sg_symmetric_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, SG_MATRIX_INIT, SG_SIDE_LEFT, SG_TRIANGLE_LOWER, \
        SG_SYMMETRY_SYMMETRIC, 0, {1.0, 0.0}, {0.0, 0.0}                                                        \
  }

/**
 * Submits a product with a symmetric or Hermitian matrix and returns at once.
 * @param context The context that runs it.
 * @param desc The matrices and scalars; read during the call only. The caller owns the matrices; job.h states their lifetime.
 * @param submit Order, priority, completion queue; NULL for the defaults. Its plan is ignored.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED (types, layouts),
 * SG_STATUS_OUT_OF_MEMORY (also: the memory limit is too low for tiles of the operands), SG_STATUS_BUSY (the context's job limit),
 * SG_STATUS_SHUTDOWN: not submitted, nothing is accessed. An empty C succeeds.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_symmetric_async(sg_context *context, const sg_symmetric_desc *desc, const sg_submit *submit,
                                    sg_job **out_job);

/**
 * Submits a product with a symmetric or Hermitian matrix and waits for it: sg_symmetric_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_symmetric(sg_context *context, const sg_symmetric_desc *desc, const sg_submit *submit);

/**
 * Descriptor of an update of a symmetric or Hermitian matrix by a product of rank k: C = alpha * op(A) * op(A)' + beta * C.
 *
 * With B, C = alpha * op(A) * op(B)' + alpha' * op(B) * op(A)' + beta * C, where alpha' is alpha, and of a Hermitian C its conjugate.
 * op(A) and op(B) are n x k, C is n x n; one triangle of C is written, and read unless beta is 0. The op is N or T of a symmetric C,
 * N or C of a Hermitian one; of real types T and C are the same. A Hermitian C has A's and B's layout, unless the types are real
 * (otherwise SG_STATUS_UNSUPPORTED), and A has B's. Since 0.2.
 */
typedef struct sg_rank_k_desc {
  size_t struct_size;   /**< sizeof(sg_rank_k_desc), set by SG_RANK_K_DESC_INIT. */
  sg_matrix a;          /**< [in: op_a(n x k)] A as stored; read only. If alpha is 0, its data pointer is ignored. */
  sg_matrix b;          /**< [in optional: op_a(n x k)] B as stored; read only. Without rows, columns and data: there is none. It may be A. */
  sg_matrix c;          /**< [inout: n x n] C, of which one triangle is accessed. */
  sg_triangle triangle; /**< The triangle of C. Default: lower. */
  sg_symmetry symmetry; /**< Of C. Default: symmetric. */
  sg_transpose op_a;           /**< Operation on A, and on B. */
  uint32_t reserved;    /**< 0. */
  sg_scalar alpha;      /**< Rounded to the operands' type; of a Hermitian C without B real. SG_RANK_K_DESC_INIT sets 1. */
  sg_scalar beta;       /**< Rounded likewise; of a Hermitian C real; 0 never reads C. SG_RANK_K_DESC_INIT sets 0. */
} sg_rank_k_desc;

/** Initial value of an sg_rank_k_desc: no B, the lower triangle of a symmetric C, alpha 1, beta 0. */
#define SG_RANK_K_DESC_INIT                                                                    \
  {                                                                                            \
    sizeof(sg_rank_k_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, SG_MATRIX_INIT, SG_TRIANGLE_LOWER, \
        SG_SYMMETRY_SYMMETRIC, SG_TRANSPOSE_N, 0, {1.0, 0.0}, {0.0, 0.0}                       \
  }

/**
 * Submits an update of a symmetric or Hermitian matrix and returns at once.
 * @param context The context that runs it.
 * @param desc The matrices and scalars; read during the call only. The caller owns the matrices; job.h states their lifetime.
 * @param submit Order, priority, completion queue; NULL for the defaults. Its plan is ignored.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return As sg_symmetric_async. Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_rank_k_async(sg_context *context, const sg_rank_k_desc *desc, const sg_submit *submit,
                                 sg_job **out_job);

/**
 * Submits an update of a symmetric or Hermitian matrix and waits for it: sg_rank_k_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_rank_k(sg_context *context, const sg_rank_k_desc *desc, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_SYMMETRIC_H */
