/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file clamp.h
 * @brief Elements between two limits, and the gradient.
 *
 * The rules of layers.h for types, arithmetic, layouts, memory, operands in place and order apply. The limits are rounded to the
 * arithmetic's type. They may be infinite, and not NaN.
 */
#ifndef STREAMGEMM_CLAMP_H
#define STREAMGEMM_CLAMP_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Descriptor of a clamp: y[i][j] = min(max(x[i][j], low), high). NaN stays NaN. With low > high all other elements become high.
 * Since 0.2. */
typedef struct sg_clamp_desc {
  size_t struct_size; /**< sizeof(sg_clamp_desc), set by SG_CLAMP_DESC_INIT. */
  sg_matrix x;        /**< [in: rows x cols] X. */
  sg_matrix y;        /**< [out: rows x cols] The result; may be X. */
  double low;         /**< The least value. */
  double high;        /**< The greatest value. SG_CLAMP_DESC_INIT sets 1. */
} sg_clamp_desc;

/** Initial value of an sg_clamp_desc: limits 0 and 1. */
#define SG_CLAMP_DESC_INIT {sizeof(sg_clamp_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, 0.0, 1.0}

/** Descriptor of the gradient of a clamp: dX = dY where low <= X <= high, limits included, and 0 elsewhere, also where X is NaN.
 * Since 0.2. */
typedef struct sg_clamp_backward_desc {
  size_t struct_size; /**< sizeof(sg_clamp_backward_desc), set by SG_CLAMP_BACKWARD_DESC_INIT. */
  sg_matrix dy;       /**< [in: rows x cols] dY, the gradient of the loss with respect to Y. */
  sg_matrix x;        /**< [in: rows x cols] X, as given to sg_clamp_async. */
  sg_matrix dx;       /**< [out: rows x cols] The result; may be dY or X. */
  double low;         /**< As given to sg_clamp_async. */
  double high;        /**< As given to sg_clamp_async. SG_CLAMP_BACKWARD_DESC_INIT sets 1. */
} sg_clamp_backward_desc;

/** Initial value of an sg_clamp_backward_desc: limits 0 and 1. */
#define SG_CLAMP_BACKWARD_DESC_INIT                                                          \
  {                                                                                          \
    sizeof(sg_clamp_backward_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, SG_MATRIX_INIT, 0.0, 1.0 \
  }

/**
 * Submits a clamp and returns at once.
 * @param context The context that runs it.
 * @param desc The matrices and the limits; read during the call only.
 * @param submit Order, priority, completion queue; NULL for the defaults. Its plan is ignored.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED (types), SG_STATUS_OUT_OF_MEMORY, SG_STATUS_BUSY (the context's job
 * limit), SG_STATUS_SHUTDOWN: not submitted, nothing is accessed.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_clamp_async(sg_context *context, const sg_clamp_desc *desc, const sg_submit *submit,
                                sg_job **out_job);

/**
 * Submits a clamp and waits for it: sg_clamp_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_clamp(sg_context *context, const sg_clamp_desc *desc, const sg_submit *submit);

/**
 * Submits the gradient of a clamp and returns at once.
 * @param context,desc As in sg_clamp_async.
 * @param submit,out_job As in sg_clamp_async.
 * @return As sg_clamp_async.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_clamp_backward_async(sg_context *context, const sg_clamp_backward_desc *desc,
                                         const sg_submit *submit, sg_job **out_job);

/**
 * Submits the gradient of a clamp and waits for it: sg_clamp_backward_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_clamp_backward(sg_context *context, const sg_clamp_backward_desc *desc, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_CLAMP_H */
