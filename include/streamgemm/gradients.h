/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gradients.h
 * @brief Gradients of the operations of layers.h: softmax, layer norm, RMS norm, rotary embedding.
 *
 * The rules of layers.h for types, arithmetic, memory and order apply.
 * dY is the gradient of the loss with respect to the operation's result Y, dX that with respect to its operand X. The gradient of a
 * function of elements is a function of elements, too: see sg_function.
 */
#ifndef STREAMGEMM_GRADIENTS_H
#define STREAMGEMM_GRADIENTS_H

#include <streamgemm/job.h>
#include <streamgemm/layers.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/**
 * Descriptor of the gradient of a softmax of each row: dx[i][j] = y[i][j] * (dy[i][j] - sum over k of y[i][k] * dy[i][k]).
 *
 * Where Y is 0 because of a mask, dX is 0 if dY is finite. Since 0.2.
 */
typedef struct sg_softmax_backward_desc {
  size_t struct_size; /**< sizeof(sg_softmax_backward_desc), set by SG_SOFTMAX_BACKWARD_DESC_INIT. */
  sg_matrix y;        /**< [in: rows x cols] Y, the softmax as sg_softmax_async has written it. */
  sg_matrix dy;       /**< [in: rows x cols] dY. */
  sg_matrix dx;       /**< [out: rows x cols] The result; may be Y or dY. */
} sg_softmax_backward_desc;

/** Initial value of an sg_softmax_backward_desc: matrices of f32 without elements. */
#define SG_SOFTMAX_BACKWARD_DESC_INIT {sizeof(sg_softmax_backward_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, SG_MATRIX_INIT}

/**
 * Descriptor of the gradients of a norm of each row. With g = dy[i][j] * gamma[j], n columns, r = 1 / sqrt(variance + epsilon), or of an
 * RMS norm 1 / sqrt(mean of x^2 + epsilon), and the normalized h = (x[i][j] - mean) * r, or x[i][j] * r:
 * layer norm: dx[i][j] = r * (g - mean of g - h * mean of (g * h)); RMS norm: dx[i][j] = r * (g - h * mean of (g * h));
 * dgamma[j] = sum over i of dy[i][j] * h; dbeta[j] = sum over i of dy[i][j]. Since 0.2.
 */
typedef struct sg_norm_backward_desc {
  size_t struct_size; /**< sizeof(sg_norm_backward_desc), set by SG_NORM_BACKWARD_DESC_INIT. */
  sg_matrix dy;       /**< [in: rows x cols] dY. */
  sg_matrix x;        /**< [in: rows x cols] X, as given to sg_norm_async. */
  const void *gamma;  /**< [in optional: cols] As given to sg_norm_async; NULL: ones. */
  sg_matrix dx;       /**< [out: rows x cols] The result dX; may be dY or X. */
  void *dgamma;       /**< [out optional: cols] Result: n contiguous values of X's type; NULL: not computed. Overlaps no operand. */
  void *dbeta;        /**< [out optional: cols] Result; NULL: not computed. Layer norm only. */
  double epsilon;     /**< As given to sg_norm_async. SG_NORM_BACKWARD_DESC_INIT sets 1e-5. */
  sg_norm_kind kind;  /**< Default: layer norm. */
  uint32_t reserved;  /**< 0. */
} sg_norm_backward_desc;

/** Initial value of an sg_norm_backward_desc: of a layer norm without gamma, epsilon 1e-5; dX only. */
#define SG_NORM_BACKWARD_DESC_INIT                                                                         \
  {                                                                                                        \
    sizeof(sg_norm_backward_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, NULL, SG_MATRIX_INIT, NULL, NULL, 1e-5, \
        SG_NORM_LAYER, 0                                                                                   \
  }

/** Descriptor of the gradient of a rotary embedding: dX is dY rotated back. The fields are those of sg_rotary_desc. Since 0.2. */
typedef struct sg_rotary_backward_desc {
  size_t struct_size;      /**< sizeof(sg_rotary_backward_desc), set by SG_ROTARY_BACKWARD_DESC_INIT. */
  sg_matrix dy;            /**< [in: rows x cols] dY. */
  sg_matrix dx;            /**< [out: rows x cols] The result; may be dY. */
  sg_matrix cos;           /**< [in optional: positions x pairs] As given to sg_rotary_async; data NULL: by theta. */
  sg_matrix sin;           /**< [in optional: positions x pairs] Given together with cos. */
  int64_t head_size;       /**< As given to sg_rotary_async, and so are the fields below. */
  int64_t rotated_size;    /**< Even, at most head_size; 0: head_size. */
  int64_t first_position;  /**< Of the first row; >= 0. */
  int64_t sequence_length; /**< Rows of a sequence; 0: there is one sequence. */
  double theta;            /**< Positive, finite. SG_ROTARY_BACKWARD_DESC_INIT sets 10000. */
  sg_rotary_pairs pairs;   /**< Default: halves. */
  uint32_t reserved;       /**< 0. */
} sg_rotary_backward_desc;

/** Initial value of an sg_rotary_backward_desc: one head, all of it rotated, by theta 10000 from position 0. */
#define SG_ROTARY_BACKWARD_DESC_INIT                                                                             \
  {                                                                                                              \
    sizeof(sg_rotary_backward_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, SG_MATRIX_INIT, SG_MATRIX_INIT, 0, 0, 0, 0, \
        10000.0, SG_ROTARY_HALVES, 0                                                                             \
  }

/**
 * Submits the gradient of a softmax and returns at once.
 * @param context The context that runs it.
 * @param desc The operands; read during the call only.
 * @param submit Order, priority, completion queue; NULL for the defaults. Its plan is ignored.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED (types), SG_STATUS_OUT_OF_MEMORY, SG_STATUS_BUSY (the context's job
 * limit), SG_STATUS_SHUTDOWN: not submitted, nothing is accessed.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_softmax_backward_async(sg_context *context, const sg_softmax_backward_desc *desc,
                                           const sg_submit *submit, sg_job **out_job);

/**
 * Submits the gradient of a softmax and waits for it: sg_softmax_backward_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_softmax_backward(sg_context *context, const sg_softmax_backward_desc *desc, const sg_submit *submit);

/**
 * Submits the gradients of a norm and returns at once.
 * @param context,desc As in sg_softmax_backward_async.
 * @param submit,out_job As in sg_softmax_backward_async.
 * @return As sg_softmax_backward_async.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_norm_backward_async(sg_context *context, const sg_norm_backward_desc *desc, const sg_submit *submit,
                                        sg_job **out_job);

/**
 * Submits the gradients of a norm and waits for them: sg_norm_backward_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_norm_backward(sg_context *context, const sg_norm_backward_desc *desc, const sg_submit *submit);

/**
 * Submits the gradient of a rotary embedding and returns at once.
 * @param context,desc As in sg_softmax_backward_async.
 * @param submit,out_job As in sg_softmax_backward_async.
 * @return As sg_softmax_backward_async.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_rotary_backward_async(sg_context *context, const sg_rotary_backward_desc *desc,
                                          const sg_submit *submit, sg_job **out_job);

/**
 * Submits the gradient of a rotary embedding and waits for it: sg_rotary_backward_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_rotary_backward(sg_context *context, const sg_rotary_backward_desc *desc, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_GRADIENTS_H */
