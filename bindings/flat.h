/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flat forms of the calls that take descriptors, for wrappers of managed languages: every argument is a scalar, a
 * handle or a 64-bit address, so that one submission is one cheap call and no struct has to be mirrored in another
 * language. Static functions over the public ABI, compiled into each wrapper. Addresses are int64_t; statuses, outputs
 * and rules are those of the function named in each comment.
 *
 * The lists of arguments exist once, as macros: SG_FLAT_GEMM follows sg_gemm_desc, SG_FLAT_SUBMIT follows sg_submit.
 * A field that is added there is added here, and every function below takes it.
 */
#ifndef STREAMGEMM_BINDINGS_FLAT_H
#define STREAMGEMM_BINDINGS_FLAT_H

#include <stddef.h>
#include <stdlib.h>
#include <streamgemm/streamgemm.h>

/* An sg_matrix. */
#define SG_FLAT_MATRIX(x) \
  int64_t x, int64_t x##_rows, int64_t x##_cols, int64_t x##_ld, int32_t x##_dtype, int32_t x##_layout
#define SG_FLAT_MATRIX_NAMES(x) x, x##_rows, x##_cols, x##_ld, x##_dtype, x##_layout

/* The fields of an sg_gemm_desc. a_array, b_array and c_array are addresses of arrays of addresses, or 0. */
#define SG_FLAT_GEMM                                                                                                  \
  SG_FLAT_MATRIX(a), SG_FLAT_MATRIX(b), SG_FLAT_MATRIX(c), int32_t op_a, int32_t op_b, int32_t compute, double alpha, \
      double alpha_im, double beta, double beta_im, int64_t batch, int64_t stride_a, int64_t stride_b,                \
      int64_t stride_c, int64_t a_array, int64_t b_array, int64_t c_array, int64_t bias, int64_t stride_bias,         \
      int32_t bias_shape, int32_t activation
#define SG_FLAT_GEMM_NAMES                                                                                          \
  SG_FLAT_MATRIX_NAMES(a), SG_FLAT_MATRIX_NAMES(b), SG_FLAT_MATRIX_NAMES(c), op_a, op_b, compute, alpha, alpha_im,  \
      beta, beta_im, batch, stride_a, stride_b, stride_c, a_array, b_array, c_array, bias, stride_bias, bias_shape, \
      activation

/* The fields of an sg_submit. `after` is the address of an array of after_count job handles, or 0; `label` that of a
 * text, or 0. */
#define SG_FLAT_SUBMIT                                                                                     \
  sg_stream *stream, int64_t after, int32_t after_count, int32_t priority, int32_t flags, sg_queue *queue, \
      int64_t tag, const sg_plan_options *options, int64_t deadline, int64_t label
#define SG_FLAT_SUBMIT_NAMES stream, after, after_count, priority, flags, queue, tag, options, deadline, label

#ifndef SWIG

/* Memory at an address. */
static inline void *sg_flat_at(int64_t address) { return (void *)(intptr_t)address; }

static inline sg_matrix sg_flat_matrix(SG_FLAT_MATRIX(x)) {
  sg_matrix m = {sg_flat_at(x), x_rows, x_cols, x_ld, (sg_dtype)x_dtype, (sg_layout)x_layout};
  return m;
}

static inline sg_gemm_desc sg_flat_gemm_desc(SG_FLAT_GEMM) {
  sg_gemm_desc d = SG_GEMM_DESC_INIT;
  d.a = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(a));
  d.b = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(b));
  d.c = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(c));
  d.op_a = (sg_op)op_a;
  d.op_b = (sg_op)op_b;
  d.compute = (sg_compute)compute;
  d.alpha.re = alpha;
  d.alpha.im = alpha_im;
  d.beta.re = beta;
  d.beta.im = beta_im;
  d.batch = batch;
  d.stride_a = stride_a;
  d.stride_b = stride_b;
  d.stride_c = stride_c;
  d.a_array = (void *const *)sg_flat_at(a_array);
  d.b_array = (void *const *)sg_flat_at(b_array);
  d.c_array = (void *const *)sg_flat_at(c_array);
  d.bias = sg_flat_at(bias);
  d.stride_bias = stride_bias;
  d.bias_shape = (sg_bias)bias_shape;
  d.activation = (sg_activation)activation;
  return d;
}

static inline sg_submit sg_flat_submit(SG_FLAT_SUBMIT) {
  sg_submit s = SG_SUBMIT_INIT;
  s.stream = stream;
  s.after = (sg_job *const *)sg_flat_at(after);
  s.after_count = after_count;
  s.priority = priority;
  s.flags = (uint32_t)flags;
  s.queue = queue;
  s.tag = (uint64_t)tag;
  s.plan = options;
  s.deadline_ns = deadline;
  s.label = (const char *)sg_flat_at(label);
  return s;
}

#endif /* SWIG */

/* sg_gemm_async. */
static inline sg_status sg_flat_gemm_async(sg_context *context, SG_FLAT_GEMM, SG_FLAT_SUBMIT, sg_job **out_job) {
  const sg_gemm_desc desc = sg_flat_gemm_desc(SG_FLAT_GEMM_NAMES);
  const sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  return sg_gemm_async(context, &desc, &submit, out_job);
}

/* sg_gemm. Blocks. */
static inline sg_status sg_flat_gemm(sg_context *context, SG_FLAT_GEMM, SG_FLAT_SUBMIT) {
  const sg_gemm_desc desc = sg_flat_gemm_desc(SG_FLAT_GEMM_NAMES);
  const sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  return sg_gemm(context, &desc, &submit);
}

/* Room for the GEMMs of a group, to be filled by sg_flat_group_set and freed by sg_flat_group_free; 0: no memory. */
static inline int64_t sg_flat_group_alloc(int32_t count) {
  return (int64_t)(intptr_t)calloc(count > 0 ? (size_t)count : 1, sizeof(sg_gemm_desc));
}

/* GEMM `index` of a group. */
static inline void sg_flat_group_set(int64_t group, int32_t index, SG_FLAT_GEMM) {
  ((sg_gemm_desc *)sg_flat_at(group))[index] = sg_flat_gemm_desc(SG_FLAT_GEMM_NAMES);
}

/* Frees the room; 0 is a no-op. A group is read during a submission only. */
static inline void sg_flat_group_free(int64_t group) { free(sg_flat_at(group)); }

/* sg_gemm_grouped_async. */
static inline sg_status sg_flat_gemm_grouped_async(sg_context *context, int64_t group, int32_t count, SG_FLAT_SUBMIT,
                                                   sg_job **out_job) {
  const sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  return sg_gemm_grouped_async(context, (const sg_gemm_desc *)sg_flat_at(group), count, &submit, out_job);
}

/* sg_plan_create. */
static inline sg_status sg_flat_plan_create(sg_context *context, SG_FLAT_GEMM, const sg_plan_options *options,
                                            sg_plan **out_plan) {
  const sg_gemm_desc desc = sg_flat_gemm_desc(SG_FLAT_GEMM_NAMES);
  return sg_plan_create(context, &desc, options, out_plan);
}

/* sg_plan_run_async. */
static inline sg_status sg_flat_plan_run_async(sg_plan *plan, SG_FLAT_GEMM, SG_FLAT_SUBMIT, sg_job **out_job) {
  const sg_gemm_desc desc = sg_flat_gemm_desc(SG_FLAT_GEMM_NAMES);
  const sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  return sg_plan_run_async(plan, &desc, &submit, out_job);
}

/* sg_copy_async. */
static inline sg_status sg_flat_copy_async(sg_context *context, int64_t dst, int64_t src, int64_t bytes, SG_FLAT_SUBMIT,
                                           sg_job **out_job) {
  const sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  return sg_copy_async(context, sg_flat_at(dst), sg_flat_at(src), (uint64_t)bytes, &submit, out_job);
}

/* sg_copy_2d_async. */
static inline sg_status sg_flat_copy_2d_async(sg_context *context, int64_t dst, int64_t dst_pitch, int64_t src,
                                              int64_t src_pitch, int64_t width, int64_t height, SG_FLAT_SUBMIT,
                                              sg_job **out_job) {
  const sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  return sg_copy_2d_async(context, sg_flat_at(dst), (uint64_t)dst_pitch, sg_flat_at(src), (uint64_t)src_pitch,
                          (uint64_t)width, (uint64_t)height, &submit, out_job);
}

/* sg_gemm_async into a graph. */
static inline sg_status sg_flat_record_gemm(sg_context *context, sg_graph *graph, SG_FLAT_GEMM, SG_FLAT_SUBMIT) {
  const sg_gemm_desc desc = sg_flat_gemm_desc(SG_FLAT_GEMM_NAMES);
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  submit.graph = graph;
  return sg_gemm_async(context, &desc, &submit, NULL);
}

/* sg_copy_2d_async into a graph. */
static inline sg_status sg_flat_record_copy_2d(sg_context *context, sg_graph *graph, int64_t dst, int64_t dst_pitch,
                                               int64_t src, int64_t src_pitch, int64_t width, int64_t height,
                                               SG_FLAT_SUBMIT) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  submit.graph = graph;
  return sg_copy_2d_async(context, sg_flat_at(dst), (uint64_t)dst_pitch, sg_flat_at(src), (uint64_t)src_pitch,
                          (uint64_t)width, (uint64_t)height, &submit, NULL);
}

/* sg_graph_set_gemm. */
static inline sg_status sg_flat_graph_set_gemm(sg_graph *graph, int32_t index, SG_FLAT_GEMM) {
  const sg_gemm_desc desc = sg_flat_gemm_desc(SG_FLAT_GEMM_NAMES);
  return sg_graph_set_gemm(graph, index, &desc);
}

/* sg_graph_run_async. */
static inline sg_status sg_flat_graph_run_async(sg_graph *graph, SG_FLAT_SUBMIT, sg_job **out_job) {
  const sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  return sg_graph_run_async(graph, &submit, out_job);
}

/* sg_pipeline_push_async. */
static inline sg_status sg_flat_pipeline_push_async(sg_pipeline *pipeline, int64_t input, int64_t output,
                                                    SG_FLAT_SUBMIT, sg_job **out_job) {
  const sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  return sg_pipeline_push_async(pipeline, sg_flat_at(input), sg_flat_at(output), &submit, out_job);
}

/* sg_queue_next_batch into raw memory, which the caller reads by the layout that the functions below return. */
static inline sg_status sg_flat_next_batch(sg_queue *queue, int64_t completions, int32_t capacity, int64_t timeout_ns,
                                           int32_t *out_count) {
  return sg_queue_next_batch(queue, (sg_completion *)sg_flat_at(completions), capacity, timeout_ns, out_count);
}

/* Bytes from one completion to the next. */
static inline int32_t sg_flat_completion_size(void) { return (int32_t)sizeof(sg_completion); }
/* Offset of the tag, 8 bytes. */
static inline int32_t sg_flat_completion_tag(void) { return (int32_t)offsetof(sg_completion, tag); }
/* Offset of the status, 4 bytes. */
static inline int32_t sg_flat_completion_status(void) { return (int32_t)offsetof(sg_completion, status); }
/* Offset of the message, NUL-terminated. */
static inline int32_t sg_flat_completion_message(void) { return (int32_t)offsetof(sg_completion, message); }

#endif /* STREAMGEMM_BINDINGS_FLAT_H */
