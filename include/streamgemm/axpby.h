/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file axpby.h
 * @brief Scale and add: C = activation(alpha * A + beta * C), element by element.
 *
 * A and C have the same shape, type and layout. The type is f64, f32, f16, bf16, c64, c128 or i32. Each element is
 * computed in the accumulator of gemm.h (f32 for f16 and bf16, modulo 2^32 for i32) and rounded once. alpha == 0: A is
 * not accessed, so alpha 0 and beta 1 apply the activation to C in place. beta == 0: C is not read. alpha, beta and the
 * activation follow the rules of gemm.h. Gaps between columns or rows are never accessed.
 *
 * The matrices are in any memory (memory.h), each in its own layout; of c64, c128 and i32 in the same one. A and C may not overlap.
 * Order,
 * tracking, priorities, cancellation and deadlines are those of sg_gemm_async. A stream's limit of compute units confines a
 * scale-and-add only if it is a partition.
 */
#ifndef STREAMGEMM_AXPBY_H
#define STREAMGEMM_AXPBY_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Descriptor of a scale-and-add, C = activation(alpha * A + beta * C), element by element. */
typedef struct sg_axpby_desc {
  size_t struct_size;       /**< sizeof(sg_axpby_desc), set by SG_AXPBY_DESC_INIT. */
  sg_matrix a;              /**< [in: rows x cols] A; read only. If alpha is 0, its data pointer is ignored. */
  sg_matrix c;              /**< [inout: rows x cols] C. */
  sg_scalar alpha;          /**< Rounded to the accumulator's type. SG_AXPBY_DESC_INIT sets 1. */
  sg_scalar beta;           /**< Rounded to the accumulator's type. SG_AXPBY_DESC_INIT sets 1. */
  sg_activation activation; /**< Default: none. */
  uint32_t reserved;        /**< 0. */
} sg_axpby_desc;

/** Initial value of an sg_axpby_desc: alpha 1, beta 1, no activation. */
#define SG_AXPBY_DESC_INIT                                                                               \
  {                                                                                                      \
    sizeof(sg_axpby_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, {1.0, 0.0}, {1.0, 0.0}, SG_ACTIVATION_NONE, 0 \
  }

/**
 * Submits a scale-and-add and returns at once.
 * @param context The context that runs it.
 * @param desc The matrices and scalars; read during the call only. The caller owns the matrices; job.h states their
 * lifetime.
 * @param submit Order, priority, completion queue; NULL for the defaults. Its plan is ignored.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED (types, unequal layouts of some, an activation that the type does not have),
 * SG_STATUS_OUT_OF_MEMORY, SG_STATUS_BUSY (the context's job limit),
 * SG_STATUS_SHUTDOWN: not submitted, nothing is accessed. An empty C succeeds.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_axpby_async(sg_context *context, const sg_axpby_desc *desc, const sg_submit *submit,
                                sg_job **out_job);

/**
 * Submits a scale-and-add and waits for it: sg_axpby_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_axpby(sg_context *context, const sg_axpby_desc *desc, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_AXPBY_H */
