/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file triangular.h
 * @brief Triangular matrices: solves and products in place, BLAS's trsm and trmm.
 *
 * The types are f64, f32, c64 and c128; the arithmetic is in the operands' type. The matrices are in any memory (memory.h), each in its
 * own layout; a complex op C needs A in B's layout (SG_STATUS_UNSUPPORTED). A and B may not overlap.
 *
 * Of A one triangle is used. The other one, and a diagonal of ones, may hold anything, NaN too: it has no effect on the result, but
 * all of A must be readable. For the order of jobs A counts as a whole. Operands in host memory may be larger than the device's
 * memory: they then cross the link in tiles, and so they do where this is faster. A solve needs room for one column of tiles
 * of B, or one row from the right; what does not fit is SG_STATUS_OUT_OF_MEMORY, with the bytes that it needs.
 *
 * alpha == 0 makes B zero; neither A nor B is then read. alpha is rounded to the operands' type before this rule applies. Nothing is
 * checked for singularity: a zero on the diagonal of a solve gives infinities or NaN, as in BLAS. NaN and infinities of the
 * used triangle and of B propagate, but for products with zeros that the device may skip.
 *
 * The libraries of some devices multiply by reciprocals of the diagonal, of which a subnormal one then gives infinities, or invert
 * blocks on it. Where they do not, the error of a solve is that of substitution: X is the exact solution for an A whose elements
 * differ by at most about n roundings (Higham, Accuracy and Stability of Numerical Algorithms, 2002, theorem 8.5). The formulas are those of the BLAS (Dongarra et al., A Set of Level 3 Basic Linear Algebra
 * Subprograms, ACM TOMS 16, 1990).
 */
#ifndef STREAMGEMM_TRIANGULAR_H
#define STREAMGEMM_TRIANGULAR_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/**
 * Descriptor of a triangular solve or product in place: B becomes the X of op(A) * X = alpha * B, or alpha * op(A) * B.
 *
 * With A on the right, the X of X * op(A) = alpha * B, or alpha * B * op(A). A is square, with as many rows as B has on the left, and
 * as many as B has columns on the right. Since 0.2.
 */
typedef struct sg_triangular_desc {
  size_t struct_size;      /**< sizeof(sg_triangular_desc), set by SG_TRIANGULAR_DESC_INIT. */
  sg_matrix a;             /**< [in: order x order] A, of which one triangle is used; read only. If alpha is 0, its data pointer is ignored. */
  sg_matrix b;             /**< [inout: rows x cols] B, which is replaced. */
  sg_triangular_kind kind; /**< A solve or a product. Default: a solve. */
  sg_side side;            /**< The side on which op(A) stands. Default: left. */
  sg_triangle triangle;    /**< The triangle of A, before the op. Default: lower. */
  sg_transpose op_a;              /**< Operation on A. */
  sg_diagonal diagonal;    /**< The diagonal of A. Default: as stored. */
  uint32_t reserved;       /**< 0. */
  sg_scalar alpha;         /**< Rounded to the operands' type. SG_TRIANGULAR_DESC_INIT sets 1. */
} sg_triangular_desc;

/** Initial value of an sg_triangular_desc: a solve with the lower triangle on the left, alpha 1. */
#define SG_TRIANGULAR_DESC_INIT                                                                    \
  {                                                                                                \
    sizeof(sg_triangular_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, SG_TRIANGULAR_SOLVE, SG_SIDE_LEFT, \
        SG_TRIANGLE_LOWER, SG_TRANSPOSE_N, SG_DIAGONAL_STORED, 0, {1.0, 0.0}                       \
  }

/**
 * Submits a triangular solve or product and returns at once.
 * @param context The context that runs it.
 * @param desc The matrices and alpha; read during the call only. The caller owns the matrices; job.h states their lifetime.
 * @param submit Order, priority, completion queue; NULL for the defaults. Its plan is ignored.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED (types, unequal layouts with a complex op C),
 * SG_STATUS_OUT_OF_MEMORY (also: the memory limit is too low for tiles of the operands), SG_STATUS_BUSY (the context's job limit),
 * SG_STATUS_SHUTDOWN: not submitted, nothing is accessed. An empty B succeeds.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_triangular_async(sg_context *context, const sg_triangular_desc *desc, const sg_submit *submit,
                                     sg_job **out_job);

/**
 * Submits a triangular solve or product and waits for it: sg_triangular_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_triangular(sg_context *context, const sg_triangular_desc *desc, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_TRIANGULAR_H */
