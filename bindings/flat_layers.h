/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flat forms of the layers: linear.h, attention.h, conv.h, recurrent.h, layers.h, axpby.h, convert.h, gather.h and
 * custom.h. As in flat.h, whose macros these use: an operand is an address with its sizes or strides, 0 where it is
 * left out. With a graph the submission is recorded in it and makes no job; without one, 0, it is submitted.
 */
#ifndef STREAMGEMM_BINDINGS_FLAT_LAYERS_H
#define STREAMGEMM_BINDINGS_FLAT_LAYERS_H

#include "flat.h"

/* An sg_heads. */
#define SG_FLAT_HEADS(x) int64_t x, int64_t x##_batch_stride, int64_t x##_head_stride, int64_t x##_token_stride
#define SG_FLAT_HEADS_NAMES(x) x, x##_batch_stride, x##_head_stride, x##_token_stride

/* An sg_sequence. */
#define SG_FLAT_SEQUENCE(x) int64_t x, int64_t x##_step_stride, int64_t x##_batch_stride
#define SG_FLAT_SEQUENCE_NAMES(x) x, x##_step_stride, x##_batch_stride

/* An sg_images. */
#define SG_FLAT_IMAGES(x) int64_t x, int64_t x##_stride
#define SG_FLAT_IMAGES_NAMES(x) x, x##_stride

/* An sg_windows. */
#define SG_FLAT_WINDOWS                                                                                           \
  int64_t kernel_h, int64_t kernel_w, int64_t stride_h, int64_t stride_w, int64_t dilation_h, int64_t dilation_w, \
      int64_t pad_top, int64_t pad_left, int64_t pad_bottom, int64_t pad_right
#define SG_FLAT_WINDOWS_NAMES \
  kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left, pad_bottom, pad_right

/* What sg_attention_desc and sg_attention_backward_desc have beside their operands. */
#define SG_FLAT_ATTENTION                                                                                            \
  int32_t dtype, int32_t mask, int64_t mask_offset, int64_t batch, int64_t heads, int64_t kv_heads, int64_t queries, \
      int64_t keys, int64_t width, int64_t value_width, double scale, int64_t workspace, int32_t compute
#define SG_FLAT_SET_ATTENTION(desc)         \
  do {                                      \
    (desc).dtype = (sg_dtype)dtype;         \
    (desc).mask = (sg_mask)mask;            \
    (desc).mask_offset = mask_offset;       \
    (desc).batch = batch;                   \
    (desc).heads = heads;                   \
    (desc).kv_heads = kv_heads;             \
    (desc).queries = queries;               \
    (desc).keys = keys;                     \
    (desc).width = width;                   \
    (desc).value_width = value_width;       \
    (desc).scale = scale;                   \
    (desc).workspace = (uint64_t)workspace; \
    (desc).compute = (sg_compute)compute;   \
  } while (0)

/* The sizes of images, and their windows. */
#define SG_FLAT_SIZES int64_t images, int64_t channels, int64_t height, int64_t width, SG_FLAT_WINDOWS
#define SG_FLAT_SET_SIZES(desc)                              \
  do {                                                       \
    (desc).images = images;                                  \
    (desc).channels = channels;                              \
    (desc).height = height;                                  \
    (desc).width = width;                                    \
    (desc).windows = sg_flat_windows(SG_FLAT_WINDOWS_NAMES); \
  } while (0)

/* The sizes of a recurrent layer. */
#define SG_FLAT_RECURRENT int32_t cell, int32_t gate_order, int64_t steps, int64_t batch, int64_t inputs, int64_t hidden
#define SG_FLAT_SET_RECURRENT(desc)                \
  do {                                             \
    (desc).cell = (sg_cell)cell;                   \
    (desc).gate_order = (sg_gate_order)gate_order; \
    (desc).steps = steps;                          \
    (desc).batch = batch;                          \
    (desc).in = inputs;                            \
    (desc).hidden = hidden;                        \
  } while (0)

#ifndef SWIG

static inline sg_heads sg_flat_heads(SG_FLAT_HEADS(x)) {
  sg_heads made = {sg_flat_at(x), x_batch_stride, x_head_stride, x_token_stride};
  return made;
}

static inline sg_sequence sg_flat_sequence(SG_FLAT_SEQUENCE(x)) {
  sg_sequence made = {sg_flat_at(x), x_step_stride, x_batch_stride};
  return made;
}

static inline sg_images sg_flat_images(SG_FLAT_IMAGES(x)) {
  sg_images made = {sg_flat_at(x), x_stride};
  return made;
}

static inline sg_windows sg_flat_windows(SG_FLAT_WINDOWS) {
  sg_windows made = {SG_FLAT_WINDOWS_NAMES};
  return made;
}

#endif /* SWIG */

/* sg_elementwise_async. b is 0 with functions of one operand. */
static inline sg_status sg_flat_elementwise_async(sg_context *context, sg_graph *graph, SG_FLAT_MATRIX(a),
                                                  SG_FLAT_MATRIX(b), SG_FLAT_MATRIX(c), int32_t function,
                                                  SG_FLAT_SUBMIT, sg_job **out_job) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  sg_elementwise_desc desc = SG_ELEMENTWISE_DESC_INIT;
  submit.graph = graph;
  desc.a = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(a));
  desc.b = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(b));
  desc.c = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(c));
  desc.function = (sg_function)function;
  return sg_elementwise_async(context, &desc, &submit, out_job);
}

/* sg_axpby_async. */
static inline sg_status sg_flat_axpby_async(sg_context *context, sg_graph *graph, SG_FLAT_MATRIX(a), SG_FLAT_MATRIX(c),
                                            double alpha, double alpha_im, double beta, double beta_im,
                                            int32_t activation, SG_FLAT_SUBMIT, sg_job **out_job) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  sg_axpby_desc desc = SG_AXPBY_DESC_INIT;
  submit.graph = graph;
  desc.a = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(a));
  desc.c = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(c));
  desc.alpha.re = alpha;
  desc.alpha.im = alpha_im;
  desc.beta.re = beta;
  desc.beta.im = beta_im;
  desc.activation = (sg_activation)activation;
  return sg_axpby_async(context, &desc, &submit, out_job);
}

/* sg_softmax_async. */
static inline sg_status sg_flat_softmax_async(sg_context *context, sg_graph *graph, SG_FLAT_MATRIX(x),
                                              SG_FLAT_MATRIX(y), int32_t mask, int64_t mask_offset, int64_t mask_rows,
                                              SG_FLAT_SUBMIT, sg_job **out_job) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  sg_softmax_desc desc = SG_SOFTMAX_DESC_INIT;
  submit.graph = graph;
  desc.x = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(x));
  desc.y = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(y));
  desc.mask = (sg_mask)mask;
  desc.mask_offset = mask_offset;
  desc.mask_rows = mask_rows;
  return sg_softmax_async(context, &desc, &submit, out_job);
}

/* sg_norm_async. gamma and beta are addresses, or 0. */
static inline sg_status sg_flat_norm_async(sg_context *context, sg_graph *graph, SG_FLAT_MATRIX(x), SG_FLAT_MATRIX(y),
                                           int64_t gamma, int64_t beta, double epsilon, int32_t kind, SG_FLAT_SUBMIT,
                                           sg_job **out_job) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  sg_norm_desc desc = SG_NORM_DESC_INIT;
  submit.graph = graph;
  desc.x = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(x));
  desc.y = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(y));
  desc.gamma = sg_flat_at(gamma);
  desc.beta = sg_flat_at(beta);
  desc.epsilon = epsilon;
  desc.kind = (sg_norm_kind)kind;
  return sg_norm_async(context, &desc, &submit, out_job);
}

/* sg_rotary_async. cos and sin are 0 without tables. */
static inline sg_status sg_flat_rotary_async(sg_context *context, sg_graph *graph, SG_FLAT_MATRIX(x), SG_FLAT_MATRIX(y),
                                             SG_FLAT_MATRIX(cos), SG_FLAT_MATRIX(sin), int64_t head_size,
                                             int64_t rotated_size, int64_t first_position, int64_t sequence_length,
                                             double theta, int32_t pairs, int32_t inverse, SG_FLAT_SUBMIT,
                                             sg_job **out_job) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  sg_rotary_desc desc = SG_ROTARY_DESC_INIT;
  submit.graph = graph;
  desc.x = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(x));
  desc.y = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(y));
  desc.cos = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(cos));
  desc.sin = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(sin));
  desc.head_size = head_size;
  desc.rotated_size = rotated_size;
  desc.first_position = first_position;
  desc.sequence_length = sequence_length;
  desc.theta = theta;
  desc.pairs = (sg_rotary_pairs)pairs;
  desc.inverse = inverse;
  return sg_rotary_async(context, &desc, &submit, out_job);
}

/* sg_dequantize_async. zero_points is 0 without them. */
static inline sg_status sg_flat_dequantize_async(sg_context *context, sg_graph *graph, SG_FLAT_MATRIX(x),
                                                 SG_FLAT_MATRIX(scales), SG_FLAT_MATRIX(zero_points), SG_FLAT_MATRIX(y),
                                                 int64_t block_size, int32_t quantization, SG_FLAT_SUBMIT,
                                                 sg_job **out_job) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  sg_dequantize_desc desc = SG_DEQUANTIZE_DESC_INIT;
  submit.graph = graph;
  desc.x = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(x));
  desc.scales = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(scales));
  desc.zero_points = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(zero_points));
  desc.y = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(y));
  desc.block_size = block_size;
  desc.quantization = (sg_quantization)quantization;
  return sg_dequantize_async(context, &desc, &submit, out_job);
}

/* sg_convert_async. */
static inline sg_status sg_flat_convert_async(sg_context *context, sg_graph *graph, SG_FLAT_MATRIX(a),
                                              SG_FLAT_MATRIX(c), int32_t op_a, SG_FLAT_SUBMIT, sg_job **out_job) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  sg_convert_desc desc = SG_CONVERT_DESC_INIT;
  submit.graph = graph;
  desc.a = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(a));
  desc.c = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(c));
  desc.op_a = (sg_op)op_a;
  return sg_convert_async(context, &desc, &submit, out_job);
}

/* sg_gather_async. */
static inline sg_status sg_flat_gather_async(sg_context *context, sg_graph *graph, SG_FLAT_MATRIX(table),
                                             SG_FLAT_MATRIX(y), int64_t indices, int32_t index_type,
                                             int32_t gather_flags, SG_FLAT_SUBMIT, sg_job **out_job) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  sg_gather_desc desc = SG_GATHER_DESC_INIT;
  submit.graph = graph;
  desc.table = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(table));
  desc.y = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(y));
  desc.indices = sg_flat_at(indices);
  desc.index_type = (sg_index_type)index_type;
  desc.flags = (uint32_t)gather_flags;
  return sg_gather_async(context, &desc, &submit, out_job);
}

/* sg_linear_async. */
static inline sg_status sg_flat_linear_async(sg_context *context, sg_graph *graph, SG_FLAT_MATRIX(x), SG_FLAT_MATRIX(w),
                                             SG_FLAT_MATRIX(y), int64_t bias, int32_t op_w, int32_t activation,
                                             int32_t compute, SG_FLAT_SUBMIT, sg_job **out_job) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  sg_linear_desc desc = SG_LINEAR_DESC_INIT;
  submit.graph = graph;
  desc.x = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(x));
  desc.w = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(w));
  desc.y = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(y));
  desc.bias = sg_flat_at(bias);
  desc.op_w = (sg_op)op_w;
  desc.activation = (sg_activation)activation;
  desc.compute = (sg_compute)compute;
  return sg_linear_async(context, &desc, &submit, out_job);
}

/* sg_linear_backward_async. */
static inline sg_status sg_flat_linear_backward_async(sg_context *context, sg_graph *graph, SG_FLAT_MATRIX(dy),
                                                      SG_FLAT_MATRIX(x), SG_FLAT_MATRIX(w), SG_FLAT_MATRIX(dx),
                                                      SG_FLAT_MATRIX(dw), int64_t dbias, int32_t dbias_dtype,
                                                      int32_t op_w, int32_t compute, int32_t accumulate, SG_FLAT_SUBMIT,
                                                      sg_job **out_job) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  sg_linear_backward_desc desc = SG_LINEAR_BACKWARD_DESC_INIT;
  submit.graph = graph;
  desc.dy = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(dy));
  desc.x = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(x));
  desc.w = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(w));
  desc.dx = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(dx));
  desc.dw = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(dw));
  desc.dbias = sg_flat_at(dbias);
  desc.dbias_dtype = (sg_dtype)dbias_dtype;
  desc.op_w = (sg_op)op_w;
  desc.compute = (sg_compute)compute;
  desc.accumulate = accumulate;
  return sg_linear_backward_async(context, &desc, &submit, out_job);
}

/* sg_attention_async. */
static inline sg_status sg_flat_attention_async(sg_context *context, sg_graph *graph, SG_FLAT_HEADS(q),
                                                SG_FLAT_HEADS(k), SG_FLAT_HEADS(v), SG_FLAT_HEADS(o), SG_FLAT_ATTENTION,
                                                SG_FLAT_SUBMIT, sg_job **out_job) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  sg_attention_desc desc = SG_ATTENTION_DESC_INIT;
  submit.graph = graph;
  desc.q = sg_flat_heads(SG_FLAT_HEADS_NAMES(q));
  desc.k = sg_flat_heads(SG_FLAT_HEADS_NAMES(k));
  desc.v = sg_flat_heads(SG_FLAT_HEADS_NAMES(v));
  desc.o = sg_flat_heads(SG_FLAT_HEADS_NAMES(o));
  SG_FLAT_SET_ATTENTION(desc);
  return sg_attention_async(context, &desc, &submit, out_job);
}

/* sg_attention_backward_async. */
static inline sg_status sg_flat_attention_backward_async(sg_context *context, sg_graph *graph, SG_FLAT_HEADS(q),
                                                         SG_FLAT_HEADS(k), SG_FLAT_HEADS(v), SG_FLAT_HEADS(d_o),
                                                         SG_FLAT_HEADS(dq), SG_FLAT_HEADS(dk), SG_FLAT_HEADS(dv),
                                                         SG_FLAT_ATTENTION, SG_FLAT_SUBMIT, sg_job **out_job) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  sg_attention_backward_desc desc = SG_ATTENTION_BACKWARD_DESC_INIT;
  submit.graph = graph;
  desc.q = sg_flat_heads(SG_FLAT_HEADS_NAMES(q));
  desc.k = sg_flat_heads(SG_FLAT_HEADS_NAMES(k));
  desc.v = sg_flat_heads(SG_FLAT_HEADS_NAMES(v));
  desc.d_o = sg_flat_heads(SG_FLAT_HEADS_NAMES(d_o));
  desc.dq = sg_flat_heads(SG_FLAT_HEADS_NAMES(dq));
  desc.dk = sg_flat_heads(SG_FLAT_HEADS_NAMES(dk));
  desc.dv = sg_flat_heads(SG_FLAT_HEADS_NAMES(dv));
  SG_FLAT_SET_ATTENTION(desc);
  return sg_attention_backward_async(context, &desc, &submit, out_job);
}

/* sg_im2col_async. */
static inline sg_status sg_flat_im2col_async(sg_context *context, sg_graph *graph, SG_FLAT_IMAGES(x),
                                             SG_FLAT_MATRIX(matrix), SG_FLAT_SIZES, int64_t first_channel,
                                             int64_t used_channels, int32_t image_layout, int32_t columns,
                                             SG_FLAT_SUBMIT, sg_job **out_job) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  sg_im2col_desc desc = SG_IM2COL_DESC_INIT;
  submit.graph = graph;
  desc.x = sg_flat_images(SG_FLAT_IMAGES_NAMES(x));
  desc.matrix = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(matrix));
  SG_FLAT_SET_SIZES(desc);
  desc.first_channel = first_channel;
  desc.used_channels = used_channels;
  desc.image_layout = (sg_image_layout)image_layout;
  desc.columns = (sg_filter_layout)columns;
  return sg_im2col_async(context, &desc, &submit, out_job);
}

/* sg_col2im_async. */
static inline sg_status sg_flat_col2im_async(sg_context *context, sg_graph *graph, SG_FLAT_MATRIX(matrix),
                                             SG_FLAT_IMAGES(x), SG_FLAT_SIZES, int64_t first_channel,
                                             int64_t used_channels, int32_t image_layout, int32_t columns,
                                             int32_t accumulate, SG_FLAT_SUBMIT, sg_job **out_job) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  sg_col2im_desc desc = SG_COL2IM_DESC_INIT;
  submit.graph = graph;
  desc.matrix = sg_flat_matrix(SG_FLAT_MATRIX_NAMES(matrix));
  desc.x = sg_flat_images(SG_FLAT_IMAGES_NAMES(x));
  SG_FLAT_SET_SIZES(desc);
  desc.first_channel = first_channel;
  desc.used_channels = used_channels;
  desc.image_layout = (sg_image_layout)image_layout;
  desc.columns = (sg_filter_layout)columns;
  desc.accumulate = accumulate;
  return sg_col2im_async(context, &desc, &submit, out_job);
}

/* sg_conv2d_async. */
static inline sg_status sg_flat_conv2d_async(sg_context *context, sg_graph *graph, SG_FLAT_IMAGES(x), SG_FLAT_IMAGES(y),
                                             int64_t w, int64_t bias, SG_FLAT_SIZES, int64_t out_channels,
                                             int64_t groups, int64_t workspace, int32_t image_layout,
                                             int32_t filter_layout, int32_t dtype, int32_t activation, int32_t compute,
                                             SG_FLAT_SUBMIT, sg_job **out_job) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  sg_conv2d_desc desc = SG_CONV2D_DESC_INIT;
  submit.graph = graph;
  desc.x = sg_flat_images(SG_FLAT_IMAGES_NAMES(x));
  desc.y = sg_flat_images(SG_FLAT_IMAGES_NAMES(y));
  desc.w = sg_flat_at(w);
  desc.bias = sg_flat_at(bias);
  SG_FLAT_SET_SIZES(desc);
  desc.out_channels = out_channels;
  desc.groups = groups;
  desc.workspace = (uint64_t)workspace;
  desc.image_layout = (sg_image_layout)image_layout;
  desc.filter_layout = (sg_filter_layout)filter_layout;
  desc.dtype = (sg_dtype)dtype;
  desc.activation = (sg_activation)activation;
  desc.compute = (sg_compute)compute;
  return sg_conv2d_async(context, &desc, &submit, out_job);
}

/* sg_conv2d_backward_async. */
static inline sg_status sg_flat_conv2d_backward_async(sg_context *context, sg_graph *graph, SG_FLAT_IMAGES(dy),
                                                      SG_FLAT_IMAGES(x), int64_t w, SG_FLAT_IMAGES(dx), int64_t dw,
                                                      int64_t dbias, SG_FLAT_SIZES, int64_t out_channels,
                                                      int64_t groups, int64_t workspace, int32_t image_layout,
                                                      int32_t filter_layout, int32_t dtype, int32_t gradient_dtype,
                                                      int32_t compute, int32_t accumulate, SG_FLAT_SUBMIT,
                                                      sg_job **out_job) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  sg_conv2d_backward_desc desc = SG_CONV2D_BACKWARD_DESC_INIT;
  submit.graph = graph;
  desc.dy = sg_flat_images(SG_FLAT_IMAGES_NAMES(dy));
  desc.x = sg_flat_images(SG_FLAT_IMAGES_NAMES(x));
  desc.w = sg_flat_at(w);
  desc.dx = sg_flat_images(SG_FLAT_IMAGES_NAMES(dx));
  desc.dw = sg_flat_at(dw);
  desc.dbias = sg_flat_at(dbias);
  SG_FLAT_SET_SIZES(desc);
  desc.out_channels = out_channels;
  desc.groups = groups;
  desc.workspace = (uint64_t)workspace;
  desc.image_layout = (sg_image_layout)image_layout;
  desc.filter_layout = (sg_filter_layout)filter_layout;
  desc.dtype = (sg_dtype)dtype;
  desc.gradient_dtype = (sg_dtype)gradient_dtype;
  desc.compute = (sg_compute)compute;
  desc.accumulate = accumulate;
  return sg_conv2d_backward_async(context, &desc, &submit, out_job);
}

/* sg_recurrent_reserve_size. */
static inline sg_status sg_flat_recurrent_reserve_size(int64_t steps, int64_t batch, int64_t hidden, int32_t dtype,
                                                       uint64_t *out_bytes) {
  sg_recurrent_desc desc = SG_RECURRENT_DESC_INIT;
  desc.steps = steps;
  desc.batch = batch;
  desc.hidden = hidden;
  desc.dtype = (sg_dtype)dtype;
  return sg_recurrent_reserve_size(&desc, out_bytes);
}

/* sg_recurrent_async. */
static inline sg_status sg_flat_recurrent_async(sg_context *context, sg_graph *graph, SG_FLAT_RECURRENT,
                                                SG_FLAT_SEQUENCE(x), SG_FLAT_SEQUENCE(y), int64_t w_ih, int64_t w_hh,
                                                int64_t bias_ih, int64_t bias_hh, int64_t h0, int64_t c0, int64_t hn,
                                                int64_t cn, int64_t state_stride, int64_t reserve, int32_t dtype,
                                                int32_t compute, int32_t reverse, SG_FLAT_SUBMIT, sg_job **out_job) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  sg_recurrent_desc desc = SG_RECURRENT_DESC_INIT;
  submit.graph = graph;
  SG_FLAT_SET_RECURRENT(desc);
  desc.x = sg_flat_sequence(SG_FLAT_SEQUENCE_NAMES(x));
  desc.y = sg_flat_sequence(SG_FLAT_SEQUENCE_NAMES(y));
  desc.w_ih = sg_flat_at(w_ih);
  desc.w_hh = sg_flat_at(w_hh);
  desc.bias_ih = sg_flat_at(bias_ih);
  desc.bias_hh = sg_flat_at(bias_hh);
  desc.h0 = sg_flat_at(h0);
  desc.c0 = sg_flat_at(c0);
  desc.hn = sg_flat_at(hn);
  desc.cn = sg_flat_at(cn);
  desc.state_stride = state_stride;
  desc.reserve = sg_flat_at(reserve);
  desc.dtype = (sg_dtype)dtype;
  desc.compute = (sg_compute)compute;
  desc.reverse = reverse;
  return sg_recurrent_async(context, &desc, &submit, out_job);
}

/* sg_recurrent_backward_async. */
static inline sg_status sg_flat_recurrent_backward_async(
    sg_context *context, sg_graph *graph, SG_FLAT_RECURRENT, SG_FLAT_SEQUENCE(x), SG_FLAT_SEQUENCE(y), int64_t w_ih,
    int64_t w_hh, int64_t h0, int64_t reserve, SG_FLAT_SEQUENCE(dy), int64_t dhn, int64_t dcn, SG_FLAT_SEQUENCE(dx),
    int64_t dw_ih, int64_t dw_hh, int64_t dbias_ih, int64_t dbias_hh, int64_t dh0, int64_t dc0, int64_t state_stride,
    int32_t dtype, int32_t gradient_dtype, int32_t compute, int32_t reverse, int32_t accumulate, SG_FLAT_SUBMIT,
    sg_job **out_job) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  sg_recurrent_backward_desc desc = SG_RECURRENT_BACKWARD_DESC_INIT;
  submit.graph = graph;
  SG_FLAT_SET_RECURRENT(desc);
  desc.x = sg_flat_sequence(SG_FLAT_SEQUENCE_NAMES(x));
  desc.y = sg_flat_sequence(SG_FLAT_SEQUENCE_NAMES(y));
  desc.w_ih = sg_flat_at(w_ih);
  desc.w_hh = sg_flat_at(w_hh);
  desc.h0 = sg_flat_at(h0);
  desc.reserve = sg_flat_at(reserve);
  desc.dy = sg_flat_sequence(SG_FLAT_SEQUENCE_NAMES(dy));
  desc.dhn = sg_flat_at(dhn);
  desc.dcn = sg_flat_at(dcn);
  desc.dx = sg_flat_sequence(SG_FLAT_SEQUENCE_NAMES(dx));
  desc.dw_ih = sg_flat_at(dw_ih);
  desc.dw_hh = sg_flat_at(dw_hh);
  desc.dbias_ih = sg_flat_at(dbias_ih);
  desc.dbias_hh = sg_flat_at(dbias_hh);
  desc.dh0 = sg_flat_at(dh0);
  desc.dc0 = sg_flat_at(dc0);
  desc.state_stride = state_stride;
  desc.dtype = (sg_dtype)dtype;
  desc.gradient_dtype = (sg_dtype)gradient_dtype;
  desc.compute = (sg_compute)compute;
  desc.reverse = reverse;
  desc.accumulate = accumulate;
  return sg_recurrent_backward_async(context, &desc, &submit, out_job);
}

/* sg_custom_async. function: the address of an sg_custom_function, which gets `user`. operands: the address of
 * operand_count triples of an address, a number of bytes and an sg_access. */
static inline sg_status sg_flat_custom_async(sg_context *context, sg_graph *graph, int64_t function, int64_t user,
                                             int64_t operands, int32_t operand_count, int32_t compute_units,
                                             double seconds, SG_FLAT_SUBMIT, sg_job **out_job) {
  sg_submit submit = sg_flat_submit(SG_FLAT_SUBMIT_NAMES);
  sg_custom_desc desc = SG_CUSTOM_DESC_INIT;
  sg_custom_operand listed[SG_MAX_CUSTOM_OPERANDS] = {{NULL, 0, SG_ACCESS_READ, 0}};
  const int64_t *triples = (const int64_t *)sg_flat_at(operands);
  submit.graph = graph;
  for (int32_t i = 0; i < operand_count && i < SG_MAX_CUSTOM_OPERANDS; ++i, triples += 3) {
    listed[i].data = sg_flat_at(triples[0]);
    listed[i].bytes = (uint64_t)triples[1];
    listed[i].access = (sg_access)triples[2];
  }
  desc.function = (sg_custom_function)(intptr_t)function;
  desc.user = sg_flat_at(user);
  desc.operands = listed;
  desc.operand_count = operand_count;
  desc.compute_units = compute_units;
  desc.seconds = seconds;
  return sg_custom_async(context, &desc, &submit, out_job);
}

#endif /* STREAMGEMM_BINDINGS_FLAT_LAYERS_H */
