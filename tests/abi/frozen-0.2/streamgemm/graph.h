/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file graph.h
 * @brief Graphs: submissions that are recorded once and run with one call.
 *
 * A submission whose sg_submit names a graph is validated, planned and recorded, but not run. Recorded submissions have
 * the same order as if they had been submitted: by their streams, and by operands that overlap. A run costs its caller
 * one call. Independent small GEMMs of a graph are batched; on cuda, a graph whose operands are in device memory, but for
 * copies from and to pinned memory, becomes a CUDA graph with the same branches. It keeps the memory that its operations work
 * in, for the life of the graph; one whose plans would keep more than 1 GiB is replayed submission by submission, as on other devices.
 *
 * The caller owns the recorded operands; the rules of job.h apply from the submission of a run to its completion. A run
 * is ordered like any other submission, by all memory that the graph reads and writes, so runs of one graph follow each
 * other.
 *
 * A run completes with the status of the first submission, in the order of recording, that failed in it; its message names
 * the submission. SG_SUBMIT_UNTRACKED of a run concerns other jobs only: its own submissions keep their order.
 * Submissions that read memory which a failed one was to write do not run.
 */
#ifndef STREAMGEMM_GRAPH_H
#define STREAMGEMM_GRAPH_H

#include <streamgemm/attention.h>
#include <streamgemm/axpby.h>
#include <streamgemm/conv.h>
#include <streamgemm/convert.h>
#include <streamgemm/custom.h>
#include <streamgemm/gather.h>
#include <streamgemm/gemm.h>
#include <streamgemm/job.h>
#include <streamgemm/layers.h>
#include <streamgemm/linear.h>
#include <streamgemm/recurrent.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** The operation of a recorded submission. More may follow. Since 0.2. */
typedef enum sg_operation {
  SG_OPERATION_MARKER = 0,           /**< None: a marker has no operands, and sg_graph_update refuses it. */
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
  SG_OPERATION_CUSTOM = 20              /**< sg_custom_async. */
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

/** An operation with its operands: the descriptor that the operation's own function takes. Unused pointers are NULL.
 * Since 0.2. */
typedef struct sg_operation_desc {
  size_t struct_size;         /**< sizeof(sg_operation_desc), set by SG_OPERATION_DESC_INIT. */
  sg_operation operation;     /**< Selects one of the pointers below. SG_OPERATION_DESC_INIT sets the marker. */
  int32_t gemm_count;         /**< Descriptors in gemm: 1, or those of a group. SG_OPERATION_DESC_INIT sets 1. */
  const sg_gemm_desc *gemm;   /**< SG_OPERATION_GEMM: gemm_count descriptors. */
  const sg_copy_desc *copy;   /**< SG_OPERATION_COPY. */
  const sg_axpby_desc *axpby; /**< SG_OPERATION_AXPBY. */
  const sg_elementwise_desc *elementwise;         /**< SG_OPERATION_ELEMENTWISE. */
  const sg_softmax_desc *softmax;                 /**< SG_OPERATION_SOFTMAX. */
  const sg_norm_desc *norm;                       /**< SG_OPERATION_NORM. */
  const sg_dequantize_desc *dequantize;           /**< SG_OPERATION_DEQUANTIZE. */
  const sg_rotary_desc *rotary;                   /**< SG_OPERATION_ROTARY. */
  const sg_linear_backward_desc *linear_backward; /**< SG_OPERATION_LINEAR_BACKWARD. */
  const sg_attention_desc *attention;             /**< SG_OPERATION_ATTENTION. */
  const sg_convert_desc *convert;                 /**< SG_OPERATION_CONVERT. */
  const sg_gather_desc *gather;                   /**< SG_OPERATION_GATHER. */
  const sg_conv2d_desc *conv2d;                   /**< SG_OPERATION_CONV2D. */
  const sg_conv2d_backward_desc *conv2d_backward; /**< SG_OPERATION_CONV2D_BACKWARD. */
  const sg_im2col_desc *im2col;                   /**< SG_OPERATION_IM2COL. */
  const sg_col2im_desc *col2im;                   /**< SG_OPERATION_COL2IM. */
  const sg_recurrent_desc *recurrent;             /**< SG_OPERATION_RECURRENT. */
  const sg_recurrent_backward_desc *recurrent_backward; /**< SG_OPERATION_RECURRENT_BACKWARD. */
  const sg_attention_backward_desc *attention_backward; /**< SG_OPERATION_ATTENTION_BACKWARD. */
  const sg_custom_desc *custom;                         /**< SG_OPERATION_CUSTOM. */
} sg_operation_desc;

/** Initial value of an sg_operation_desc: a marker. */
#define SG_OPERATION_DESC_INIT                                                                                     \
  {                                                                                                                \
    sizeof(sg_operation_desc), SG_OPERATION_MARKER, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL                                                 \
  }

/**
 * Creates an empty graph. Submissions can be recorded into it until its first run (then SG_STATUS_BUSY).
 * @param[out] out_graph One reference, to be released by sg_graph_release; NULL on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY.
 * Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_create(sg_context *context, sg_graph **out_graph);

/**
 * Adds a reference.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_retain(sg_graph *graph);

/**
 * Releases a reference. Its runs in flight continue.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_release(sg_graph *graph);

/**
 * Number of recorded submissions, which is also the index of the next one.
 * @param[out] out_count The number; 0 on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE or SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_submission_count(sg_graph *graph, int32_t *out_count);

/**
 * Sets other operands and scalars of a recorded submission, for runs submitted after this call; runs in flight keep
 * theirs. Its stream, priority, label and tracking stay. The order of the recorded submissions is determined again.
 * @param index 0 <= index < the number of recorded submissions.
 * @param desc The operation as recorded, except for: of a GEMM data pointers, pointer arrays, the bias' address,
 * strides, batch, alpha and beta; of a group the same of each GEMM; of a copy dst and src; of a scale-and-add data
 * pointers, alpha and beta; of the operations of layers.h data pointers; of the gradients of a linear layer data
 * pointers and accumulate; of an attention and its gradients data pointers and scale; of a recurrent layer and its gradients data
 * pointers, which stay NULL or not. Read during the call only.
 * @return SG_STATUS_OK; SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT (also for another operation, a marker,
 * another shape, operands that overlap), SG_STATUS_UNSUPPORTED, SG_STATUS_OUT_OF_MEMORY: the graph is unchanged. Never
 * blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_update(sg_graph *graph, int32_t index, const sg_operation_desc *desc);

/**
 * sg_graph_update of one GEMM.
 * @param index,desc As in sg_graph_update; desc is the new value of its `gemm`.
 * @return As sg_graph_update. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_set_gemm(sg_graph *graph, int32_t index, const sg_gemm_desc *desc);

/**
 * sg_graph_update of a copy, whose sizes and pitches stay.
 * @param index As in sg_graph_update.
 * @param dst,src The new addresses; the caller owns the memory, as that of any recorded operand.
 * @return As sg_graph_update. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_set_copy(sg_graph *graph, int32_t index, void *dst, const void *src);

/**
 * Runs the graph. The first run, and the first one after a change, also prepares the graph, which takes longer.
 * @param submit,out_job As in sg_gemm_async; submit->plan is not used, submit->graph is NULL. An empty graph
 * succeeds. Recorded priorities apply; recorded submissions of normal priority have the priority of the run.
 * @return As sg_gemm_async. Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_run_async(sg_graph *graph, const sg_submit *submit, sg_job **out_job);

SG_END_DECLS

#endif /* STREAMGEMM_GRAPH_H */
