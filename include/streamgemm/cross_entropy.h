/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cross_entropy.h
 * @brief The cross entropy of each row, and the gradient.
 *
 * The rules of layers.h for types, arithmetic, memory and order apply. Rows are classified: column
 * j of X has the score (logit) of class j.
 */
#ifndef STREAMGEMM_CROSS_ENTROPY_H
#define STREAMGEMM_CROSS_ENTROPY_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/**
 * Descriptor of the cross entropy of each row: y[i] = log(sum over j of e^(x[i][j])) - x[i][indices[i]], computed without overflow.
 *
 * Indices are read when the job runs. A row whose index is not from 0 to the number of columns - 1 is ignored: y[i] becomes 0. Another row
 * with a NaN or plus infinity, or of minus infinity alone, becomes NaN. Y is one column, in either layout. Since 0.2.
 */
typedef struct sg_cross_entropy_desc {
  size_t struct_size;       /**< sizeof(sg_cross_entropy_desc), set by SG_CROSS_ENTROPY_DESC_INIT. */
  sg_matrix x;              /**< [in: rows x cols] X, the scores. */
  const void *indices;      /**< [in: rows of index_type] The class of each row, contiguous, aligned to their size. */
  sg_matrix y;              /**< [out: rows x 1] The result, of X's type; overlaps no operand. */
  sg_index_type index_type; /**< Default: i32. */
  uint32_t reserved;        /**< 0. */
} sg_cross_entropy_desc;

/** Initial value of an sg_cross_entropy_desc: indices of i32. */
#define SG_CROSS_ENTROPY_DESC_INIT                                                       \
  {                                                                                      \
    sizeof(sg_cross_entropy_desc), SG_MATRIX_INIT, NULL, SG_MATRIX_INIT, SG_INDEX_I32, 0 \
  }

/**
 * Descriptor of the gradient of a cross entropy: dx[i][j] = scale * dy[i] * (softmax of row i of x at j - (j is indices[i] ? 1 : 0)).
 *
 * A row that is ignored becomes 0. The gradient of the mean of all rows has no dY and the scale 1 / rows. Since 0.2.
 */
typedef struct sg_cross_entropy_backward_desc {
  size_t struct_size;       /**< sizeof(sg_cross_entropy_backward_desc), set by SG_CROSS_ENTROPY_BACKWARD_DESC_INIT. */
  sg_matrix x;              /**< [in: rows x cols] X, as given to sg_cross_entropy_async. */
  const void *indices;      /**< [in: rows of index_type] As given to sg_cross_entropy_async. */
  sg_matrix dy;             /**< [in optional: rows x 1] dY, of X's type. data NULL: ones, and the other fields are not used. */
  sg_matrix dx;             /**< [out: rows x cols] The result; may be X. */
  double scale;             /**< Of the gradient; finite, also in f32 where the arithmetic is in f32. SG_CROSS_ENTROPY_BACKWARD_DESC_INIT sets 1. */
  sg_index_type index_type; /**< Default: i32. */
  uint32_t reserved;        /**< 0. */
} sg_cross_entropy_backward_desc;

/** Initial value of an sg_cross_entropy_backward_desc: no dY, scale 1, indices of i32. */
#define SG_CROSS_ENTROPY_BACKWARD_DESC_INIT                                                                          \
  {                                                                                                                  \
    sizeof(sg_cross_entropy_backward_desc), SG_MATRIX_INIT, NULL, SG_MATRIX_INIT, SG_MATRIX_INIT, 1.0, SG_INDEX_I32, \
        0                                                                                                            \
  }

/**
 * Submits the cross entropy of each row and returns at once.
 * @param context The context that runs it.
 * @param desc The operands; read during the call only.
 * @param submit Order, priority, completion queue; NULL for the defaults. Its plan is ignored.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED (types), SG_STATUS_OUT_OF_MEMORY, SG_STATUS_BUSY (the context's job
 * limit), SG_STATUS_SHUTDOWN: not submitted, nothing is accessed.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_cross_entropy_async(sg_context *context, const sg_cross_entropy_desc *desc, const sg_submit *submit,
                                        sg_job **out_job);

/**
 * Submits the cross entropy of each row and waits for it: sg_cross_entropy_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_cross_entropy(sg_context *context, const sg_cross_entropy_desc *desc, const sg_submit *submit);

/**
 * Submits the gradient of a cross entropy and returns at once.
 * @param context,desc As in sg_cross_entropy_async.
 * @param submit,out_job As in sg_cross_entropy_async.
 * @return As sg_cross_entropy_async.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_cross_entropy_backward_async(sg_context *context, const sg_cross_entropy_backward_desc *desc,
                                                 const sg_submit *submit, sg_job **out_job);

/**
 * Submits the gradient of a cross entropy and waits for it: sg_cross_entropy_backward_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_cross_entropy_backward(sg_context *context, const sg_cross_entropy_backward_desc *desc, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_CROSS_ENTROPY_H */
