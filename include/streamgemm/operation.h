/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file operation.h
 * @brief Any operation by one function: its number and its descriptor.
 *
 * For programs that choose the operation at run time, and for wrappers: sg_run_async submits what the operation's own
 * function submits with the same descriptor, and sg_graph_update (graph.h) changes a recorded one.
 */
#ifndef STREAMGEMM_OPERATION_H
#define STREAMGEMM_OPERATION_H

#include <streamgemm/attention.h>
#include <streamgemm/axpby.h>
#include <streamgemm/clamp.h>
#include <streamgemm/collective.h>
#include <streamgemm/conv.h>
#include <streamgemm/convert.h>
#include <streamgemm/cross_entropy.h>
#include <streamgemm/custom.h>
#include <streamgemm/fill.h>
#include <streamgemm/gather.h>
#include <streamgemm/gemm.h>
#include <streamgemm/gradients.h>
#include <streamgemm/job.h>
#include <streamgemm/layers.h>
#include <streamgemm/linear.h>
#include <streamgemm/optimizer.h>
#include <streamgemm/pool.h>
#include <streamgemm/recurrent.h>
#include <streamgemm/row_dot.h>
#include <streamgemm/row_reduce.h>
#include <streamgemm/symmetric.h>
#include <streamgemm/triangular.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** An operation. More may follow. Since 0.2. */
typedef enum sg_operation SG_ENUM_INT {
  SG_OPERATION_MARKER = 0,           /**< None: a job without work; sg_graph_update refuses it. */
  SG_OPERATION_GEMM = 1,             /**< sg_gemm_async and its shorthands, sg_plan_run_async, sg_gemm_grouped_async. */
  SG_OPERATION_COPY = 2,             /**< sg_copy_async, sg_copy_2d_async. */
  SG_OPERATION_AXPBY = 3,            /**< sg_axpby_async. */
  SG_OPERATION_ELEMENTWISE = 4,      /**< sg_elementwise_async. */
  SG_OPERATION_SOFTMAX = 5,          /**< sg_softmax_async. */
  SG_OPERATION_NORM = 6,             /**< sg_norm_async. */
  SG_OPERATION_DEQUANTIZE = 7,       /**< sg_dequantize_async. */
  SG_OPERATION_ROTARY = 8,           /**< sg_rotary_async. */
  SG_OPERATION_LINEAR_BACKWARD = 9,  /**< sg_linear_backward_async. (sg_linear_async is a GEMM.) */
  SG_OPERATION_ATTENTION = 10,       /**< sg_attention_async. */
  SG_OPERATION_CONVERT = 11,         /**< sg_convert_async. */
  SG_OPERATION_GATHER = 12,          /**< sg_gather_async. */
  SG_OPERATION_CONV2D = 13,          /**< sg_conv2d_async. */
  SG_OPERATION_CONV2D_BACKWARD = 14, /**< sg_conv2d_backward_async. */
  SG_OPERATION_IM2COL = 15,          /**< sg_im2col_async. */
  SG_OPERATION_COL2IM = 16,          /**< sg_col2im_async. */
  SG_OPERATION_RECURRENT = 17,       /**< sg_recurrent_async. */
  SG_OPERATION_RECURRENT_BACKWARD = 18, /**< sg_recurrent_backward_async. */
  SG_OPERATION_ATTENTION_BACKWARD = 19, /**< sg_attention_backward_async. */
  SG_OPERATION_CUSTOM = 20,             /**< sg_custom_async. */
  SG_OPERATION_CLAMP = 21,              /**< sg_clamp_async. */
  SG_OPERATION_CLAMP_BACKWARD = 22,     /**< sg_clamp_backward_async. */
  SG_OPERATION_ROW_DOT = 23,            /**< sg_row_dot_async. */
  SG_OPERATION_ROW_REDUCE = 24,                 /**< sg_row_reduce_async. */
  SG_OPERATION_CROSS_ENTROPY = 25,              /**< sg_cross_entropy_async. */
  SG_OPERATION_CROSS_ENTROPY_BACKWARD = 26,     /**< sg_cross_entropy_backward_async. */
  SG_OPERATION_SCATTER_ADD = 27,                /**< sg_scatter_add_async. */
  SG_OPERATION_POOL2D = 28,                     /**< sg_pool2d_async. */
  SG_OPERATION_POOL2D_BACKWARD = 29,            /**< sg_pool2d_backward_async. */
  SG_OPERATION_SOFTMAX_BACKWARD = 30,           /**< sg_softmax_backward_async. */
  SG_OPERATION_NORM_BACKWARD = 31,              /**< sg_norm_backward_async. */
  SG_OPERATION_ROTARY_BACKWARD = 32,            /**< sg_rotary_backward_async. */
  SG_OPERATION_SGD = 33,                        /**< sg_sgd_async. */
  SG_OPERATION_ADAM = 34,                       /**< sg_adam_async. */
  SG_OPERATION_TRIANGULAR = 35,                 /**< sg_triangular_async. */
  SG_OPERATION_SYMMETRIC = 36,                  /**< sg_symmetric_async. */
  SG_OPERATION_RANK_K = 37,                     /**< sg_rank_k_async. */
  SG_OPERATION_ALL_REDUCE = 38,                 /**< sg_all_reduce_async. */
  SG_OPERATION_FILL = 39                        /**< sg_fill_async. */
} sg_operation;

/** A copy: the arguments of sg_copy_2d_async. sg_copy_async has height 1; its pitches are not used.
 * Since 0.2. */
typedef struct sg_copy_desc {
  size_t struct_size; /**< sizeof(sg_copy_desc), set by SG_COPY_DESC_INIT. */
  void *dst;          /**< The destination. */
  const void *src;    /**< The source. */
  uint64_t width;     /**< Bytes of a row. */
  uint64_t height;    /**< Rows. SG_COPY_DESC_INIT sets 1. */
  uint64_t dst_pitch; /**< Bytes from one row of the destination to the next; >= width. Not used if height is 1. */
  uint64_t src_pitch; /**< The same of the source. */
} sg_copy_desc;

/** Initial value of an sg_copy_desc: one row of 0 bytes. */
#define SG_COPY_DESC_INIT \
  { sizeof(sg_copy_desc), NULL, NULL, 0, 1, 0, 0 }

/** An operation with its operands. Since 0.2. */
typedef struct sg_operation_desc {
  size_t struct_size;     /**< sizeof(sg_operation_desc), set by SG_OPERATION_DESC_INIT. */
  sg_operation operation; /**< Which one. SG_OPERATION_DESC_INIT sets the marker. */
  int32_t count;          /**< Descriptors: 1, or of SG_OPERATION_GEMM those of a group. SG_OPERATION_DESC_INIT sets 1. */
  const void *desc;       /**< The descriptor that the operation's own function takes, such as an sg_softmax_desc, or sg_copy_desc,
                           * or `count` sg_gemm_desc in a row; not used of a marker. */
} sg_operation_desc;

/** Initial value of an sg_operation_desc: a marker. */
#define SG_OPERATION_DESC_INIT \
  { sizeof(sg_operation_desc), SG_OPERATION_MARKER, 1, NULL }

/**
 * Submits an operation.
 * @param operation Read during the call only, and its descriptor.
 * @param submit Options, or NULL.
 * @param[out] out_job One reference, to be released by sg_job_release, or NULL; NULL on failure.
 * @return As the operation's own function, whose errors name the descriptor operation->desc (a copy: its fields alone, such as
 * dst); SG_STATUS_INVALID_ARGUMENT for an
 * unknown operation or a NULL descriptor. Never blocks on work in flight, unless the context has a job limit. Any thread.
 * Since 0.2.
 */
SG_API sg_status sg_run_async(sg_context *context, const sg_operation_desc *operation, const sg_submit *submit,
                              sg_job **out_job);

/**
 * Submits an operation and waits for it: sg_run_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_run(sg_context *context, const sg_operation_desc *operation, const sg_submit *submit);

/**
 * Tests whether the context's devices compute an operation, without submitting it: its descriptor is checked and planned.
 * @param operation The operation. Its operands may have no address, as in sg_plan_create; they then are in device memory. Read during
 * the call only.
 * @return SG_STATUS_OK; SG_STATUS_UNSUPPORTED, and the message says what the device does not have; any other failure of the operation's own function
 * that needs no address, such as SG_STATUS_INVALID_ARGUMENT. Never blocks; takes as long as sg_plan_create. Any thread. Since 0.2.
 */
SG_API sg_status sg_context_supports(sg_context *context, const sg_operation_desc *operation);

SG_END_DECLS

#endif /* STREAMGEMM_OPERATION_H */
