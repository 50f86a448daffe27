// SPDX-License-Identifier: Apache-2.0
// The operations with one descriptor: their functions by name, and the table that sg_run_async submits and
// sg_graph_update changes.
#pragma once

#include <streamgemm/operation.h>

#include "api/submission/submission.hpp"

namespace sg {

// The name in sg_<name>_async and sg_<name>_desc, that in SG_OPERATION_<NAME>, and the name in messages with its
// article.
#define SG_EACH_OPERATION(X)                                                           \
  X(adam, ADAM, "a step of Adam")                                                      \
  X(all_reduce, ALL_REDUCE, "an all-reduce")                                           \
  X(attention, ATTENTION, "an attention")                                              \
  X(attention_backward, ATTENTION_BACKWARD, "the gradients of an attention")           \
  X(axpby, AXPBY, "a scale-and-add")                                                   \
  X(clamp, CLAMP, "a clamp")                                                           \
  X(clamp_backward, CLAMP_BACKWARD, "the gradient of a clamp")                         \
  X(col2im, COL2IM, "a col2im")                                                        \
  X(conv2d, CONV2D, "a convolution")                                                   \
  X(conv2d_backward, CONV2D_BACKWARD, "the gradients of a convolution")                \
  X(convert, CONVERT, "a conversion")                                                  \
  X(cross_entropy, CROSS_ENTROPY, "a cross entropy")                                   \
  X(cross_entropy_backward, CROSS_ENTROPY_BACKWARD, "the gradient of a cross entropy") \
  X(custom, CUSTOM, "a custom operation")                                              \
  X(dequantize, DEQUANTIZE, "a dequantization")                                        \
  X(elementwise, ELEMENTWISE, "an elementwise function")                               \
  X(fill, FILL, "a fill")                                                              \
  X(gather, GATHER, "a gather")                                                        \
  X(im2col, IM2COL, "an im2col")                                                       \
  X(linear_backward, LINEAR_BACKWARD, "the gradients of a linear layer")               \
  X(norm, NORM, "a norm")                                                              \
  X(norm_backward, NORM_BACKWARD, "the gradients of a norm")                           \
  X(pool2d, POOL2D, "a pooling")                                                       \
  X(pool2d_backward, POOL2D_BACKWARD, "the gradient of a pooling")                     \
  X(rank_k, RANK_K, "an update of a symmetric matrix")                                 \
  X(recurrent, RECURRENT, "a recurrent layer")                                         \
  X(recurrent_backward, RECURRENT_BACKWARD, "the gradients of a recurrent layer")      \
  X(rotary, ROTARY, "a rotary embedding")                                              \
  X(rotary_backward, ROTARY_BACKWARD, "the gradient of a rotary embedding")            \
  X(row_dot, ROW_DOT, "dot products of rows")                                          \
  X(row_reduce, ROW_REDUCE, "a reduction of rows")                                     \
  X(scatter_add, SCATTER_ADD, "sums into rows of a table")                             \
  X(sgd, SGD, "a step of SGD")                                                         \
  X(softmax, SOFTMAX, "a softmax")                                                     \
  X(softmax_backward, SOFTMAX_BACKWARD, "the gradient of a softmax")                   \
  X(symmetric, SYMMETRIC, "a product with a symmetric matrix")                         \
  X(triangular, TRIANGULAR, "a triangular solve or product")

// Checks and submits, or records, the operation of a descriptor. `name`: the descriptor's name in messages. Each is
// defined in the file of its public header.
#define SG_DECLARE_SUBMIT(operation, OPERATION, article)                                               \
  void submit(context &on, const sg_##operation##_desc &desc, const char *name, checked_submit &order, \
              sg_job **out_job);
SG_EACH_OPERATION(SG_DECLARE_SUBMIT)
#undef SG_DECLARE_SUBMIT

// Submits a copy. `width_name`: the name of the width in messages.
void submit_copy(context &to, void *dst, std::uint64_t dst_pitch, const void *src, std::uint64_t src_pitch,
                 const char *width_name, std::uint64_t width, std::uint64_t height, checked_submit &order,
                 sg_job **out_job);

struct operation_entry {
  sg_operation operation;
  const char *name;  // in messages, with its article
  // `desc_name`: the descriptor's name in messages.
  void (*submit)(context &on, const sg_operation_desc &given, const char *desc_name, checked_submit &order,
                 sg_job **out_job);
};

// Throws if there is no such operation.
const operation_entry &entry_of(sg_operation operation);

}  // namespace sg
