// SPDX-License-Identifier: Apache-2.0
#include "run/objects/graph.hpp"

#include <streamgemm/graph.h>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/problem_of.hpp"
#include "api/submission.hpp"
#include "plan/gemm/gemm_form.hpp"

namespace sg {
namespace {

ref<graph> graph_of(const sg_graph *handle) { return object_of<graph>(handle, object_type::graph, "graph"); }

submission recorded(const graph &in, std::int32_t index) {
  const std::int32_t size = in.size();
  if (size == 0) throw error(SG_STATUS_INVALID_ARGUMENT, "index is %d; nothing is recorded in the graph", index);
  require_range(index, 0, size - 1, "index");
  return in.at(index);
}

// NULL: it is no operation.
const char *described(sg_operation operation) noexcept {
  switch (operation) {
    case SG_OPERATION_MARKER: return "a marker";
    case SG_OPERATION_GEMM: return "a GEMM";
    case SG_OPERATION_COPY: return "a copy";
    case SG_OPERATION_AXPBY: return "a scale-and-add";
    case SG_OPERATION_ELEMENTWISE: return "an elementwise function";
    case SG_OPERATION_SOFTMAX: return "a softmax";
    case SG_OPERATION_NORM: return "a norm";
    case SG_OPERATION_LINEAR_BACKWARD: return "the gradients of a linear layer";
    case SG_OPERATION_DEQUANTIZE: return "a dequantization";
    case SG_OPERATION_ROTARY: return "a rotary embedding";
    case SG_OPERATION_ATTENTION: return "an attention";
    case SG_OPERATION_CONVERT: return "a conversion";
    case SG_OPERATION_GATHER: return "a gather";
    case SG_OPERATION_CONV2D: return "a convolution";
    case SG_OPERATION_CONV2D_BACKWARD: return "the gradients of a convolution";
    case SG_OPERATION_IM2COL: return "an im2col";
    case SG_OPERATION_COL2IM: return "a col2im";
    case SG_OPERATION_RECURRENT: return "a recurrent layer";
    case SG_OPERATION_RECURRENT_BACKWARD: return "the gradients of a recurrent layer";
    case SG_OPERATION_ATTENTION_BACKWARD: return "the gradients of an attention";
    case SG_OPERATION_CUSTOM: return "a custom operation";
  }
  return nullptr;
}

void update_gemm(context &on, const sg_operation_desc &desc, const submission &was, std::int32_t index,
                 const char *name, checked_submit &order) {
  const std::size_t recorded = was.fixed->gemms().problems;
  if (desc.gemm_count < 1 || static_cast<std::size_t>(desc.gemm_count) != recorded)
    throw error(SG_STATUS_INVALID_ARGUMENT, "desc->gemm_count is %d; submission %d of the graph has %zu",
                desc.gemm_count, index, recorded);
  require(desc.gemm, name);
  if (recorded > 1) return submit_group(on, desc.gemm, desc.gemm_count, name, order, nullptr);
  const sg_gemm_desc d = options_of(desc.gemm, SG_GEMM_DESC_INIT, name);
  checked_gemm gemm = check_gemm(on.memory(), d, {}, true, name);
  order.note(SG_OPERATION_GEMM, gemm_form(fixed_in_updates(gemm.shape)), name);
  if (gemm.nothing_to_do) return order.go(on.new_job(), nullptr, 0, nullptr);
  const auto plan = on.plan_for(gemm_form(gemm.shape), request_for(d, gemm.shape, was.request));
  submit_gemm(on, std::move(gemm), plan, order, nullptr);
}

sg_copy_desc recorded_copy(const submission &was) noexcept {
  const auto size = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  sg_copy_desc copy = SG_COPY_DESC_INIT;
  copy.width = size(was.copy.width);
  copy.height = size(was.copy.height);
  copy.dst_pitch = size(was.copy.dst_pitch);
  copy.src_pitch = size(was.copy.src_pitch);
  return copy;
}

void update_copy(context &on, const sg_operation_desc &desc, const submission &was, std::int32_t index,
                 checked_submit &order) {
  require(desc.copy, "desc->copy");
  const sg_copy_desc given = options_of(desc.copy, SG_COPY_DESC_INIT, "desc->copy"), known = recorded_copy(was);
  const auto require_same = [index](std::uint64_t now, std::uint64_t before, const char *name) {
    if (now != before)
      throw error(SG_STATUS_INVALID_ARGUMENT, "desc->copy->%s is %llu; submission %d of the graph has %llu", name,
                  static_cast<unsigned long long>(now), index, static_cast<unsigned long long>(before));
  };
  const bool is_empty = known.width == 0;  // recorded without sizes
  if (!is_empty || given.height != 0) require_same(given.width, known.width, "width");
  if (!is_empty) require_same(given.height, known.height, "height");
  if (known.height > 1) {
    require_same(given.dst_pitch, known.dst_pitch, "dst_pitch");
    require_same(given.src_pitch, known.src_pitch, "src_pitch");
  }
  submit_copy(on, given.dst, known.dst_pitch, given.src, known.src_pitch, "width", known.width, known.height, order,
              nullptr);
}

// `gemm_name`: the name of the GEMMs in messages.
void update(ref<graph> in, std::int32_t index, const submission &was, const sg_operation_desc &desc,
            const char *gemm_name) {
  if (!described(desc.operation))
    throw error(SG_STATUS_INVALID_ARGUMENT, "desc->operation is %d, which is no operation", int{desc.operation});
  if (desc.operation == SG_OPERATION_MARKER)
    throw error(SG_STATUS_INVALID_ARGUMENT, "desc->operation is %d, a marker, which has no operands",
                int{desc.operation});
  if (was.operation != desc.operation)
    throw error(SG_STATUS_INVALID_ARGUMENT, "index is %d, which is %s and not %s", index, described(was.operation),
                described(desc.operation));
  context &on = context_of(in->owner());
  checked_submit order(on, std::move(in), index, was);
  if (desc.operation == SG_OPERATION_GEMM) return update_gemm(on, desc, was, index, gemm_name, order);
  if (desc.operation == SG_OPERATION_COPY) return update_copy(on, desc, was, index, order);
  const auto with = [&]<class Desc>(const Desc *given, const Desc &defaults, const char *name, auto &&submit) {
    require(given, name);
    submit(on, options_of(given, defaults, name), name, order, nullptr);
  };
  switch (desc.operation) {
    case SG_OPERATION_ELEMENTWISE:
      return with(desc.elementwise, sg_elementwise_desc(SG_ELEMENTWISE_DESC_INIT), "desc->elementwise",
                  submit_elementwise);
    case SG_OPERATION_SOFTMAX:
      return with(desc.softmax, sg_softmax_desc(SG_SOFTMAX_DESC_INIT), "desc->softmax", submit_softmax);
    case SG_OPERATION_NORM: return with(desc.norm, sg_norm_desc(SG_NORM_DESC_INIT), "desc->norm", submit_norm);
    case SG_OPERATION_LINEAR_BACKWARD:
      return with(desc.linear_backward, sg_linear_backward_desc(SG_LINEAR_BACKWARD_DESC_INIT), "desc->linear_backward",
                  submit_linear_backward);
    case SG_OPERATION_DEQUANTIZE:
      return with(desc.dequantize, sg_dequantize_desc(SG_DEQUANTIZE_DESC_INIT), "desc->dequantize", submit_dequantize);
    case SG_OPERATION_ROTARY:
      return with(desc.rotary, sg_rotary_desc(SG_ROTARY_DESC_INIT), "desc->rotary", submit_rotary);
    case SG_OPERATION_ATTENTION:
      return with(desc.attention, sg_attention_desc(SG_ATTENTION_DESC_INIT), "desc->attention", submit_attention);
    case SG_OPERATION_ATTENTION_BACKWARD:
      return with(desc.attention_backward, sg_attention_backward_desc(SG_ATTENTION_BACKWARD_DESC_INIT),
                  "desc->attention_backward", submit_attention_backward);
    case SG_OPERATION_CUSTOM:
      return with(desc.custom, sg_custom_desc(SG_CUSTOM_DESC_INIT), "desc->custom", submit_custom);
    case SG_OPERATION_CONVERT:
      return with(desc.convert, sg_convert_desc(SG_CONVERT_DESC_INIT), "desc->convert", submit_convert);
    case SG_OPERATION_GATHER:
      return with(desc.gather, sg_gather_desc(SG_GATHER_DESC_INIT), "desc->gather", submit_gather);
    case SG_OPERATION_CONV2D:
      return with(desc.conv2d, sg_conv2d_desc(SG_CONV2D_DESC_INIT), "desc->conv2d", submit_conv2d);
    case SG_OPERATION_CONV2D_BACKWARD:
      return with(desc.conv2d_backward, sg_conv2d_backward_desc(SG_CONV2D_BACKWARD_DESC_INIT), "desc->conv2d_backward",
                  submit_conv2d_backward);
    case SG_OPERATION_IM2COL:
      return with(desc.im2col, sg_im2col_desc(SG_IM2COL_DESC_INIT), "desc->im2col", submit_im2col);
    case SG_OPERATION_COL2IM:
      return with(desc.col2im, sg_col2im_desc(SG_COL2IM_DESC_INIT), "desc->col2im", submit_col2im);
    case SG_OPERATION_RECURRENT:
      return with(desc.recurrent, sg_recurrent_desc(SG_RECURRENT_DESC_INIT), "desc->recurrent", submit_recurrent);
    case SG_OPERATION_RECURRENT_BACKWARD:
      return with(desc.recurrent_backward, sg_recurrent_backward_desc(SG_RECURRENT_BACKWARD_DESC_INIT),
                  "desc->recurrent_backward", submit_recurrent_backward);
    default: return with(desc.axpby, sg_axpby_desc(SG_AXPBY_DESC_INIT), "desc->axpby", submit_axpby);
  }
}

}  // namespace
}  // namespace sg

using sg::graph_of;
using sg::guarded;
using sg::object_type;
using sg::ref;

sg_status sg_graph_create(sg_context *context, sg_graph **out_graph) {
  if (out_graph) *out_graph = nullptr;
  return guarded([&] {
    auto on = sg::context_of(context);
    sg::require(out_graph, "out_graph");
    auto made = ref<sg::object>::adopt(new sg::graph(std::move(on)));
    *out_graph = sg::handle_of<sg_graph>(sg::make_handle(std::move(made)));
  });
}

sg_status sg_graph_retain(sg_graph *graph) { return sg::retain(graph, object_type::graph, "graph"); }

sg_status sg_graph_release(sg_graph *graph) { return sg::release(graph, object_type::graph, "graph"); }

sg_status sg_graph_submission_count(sg_graph *graph, int32_t *out_count) {
  if (out_count) *out_count = 0;
  return guarded([&] {
    const auto found = graph_of(graph);
    sg::require(out_count, "out_count");
    *out_count = found->size();
  });
}

sg_status sg_graph_update(sg_graph *graph, int32_t index, const sg_operation_desc *desc) {
  return guarded([&] {
    auto found = graph_of(graph);
    const sg::submission was = sg::recorded(*found, index);
    sg::require(desc, "desc");
    sg::update(std::move(found), index, was, sg::options_of(desc, SG_OPERATION_DESC_INIT, "desc"), "desc->gemm");
  });
}

sg_status sg_graph_set_gemm(sg_graph *graph, int32_t index, const sg_gemm_desc *desc) {
  return guarded([&] {
    auto found = graph_of(graph);
    const sg::submission was = sg::recorded(*found, index);
    sg_operation_desc gemm = SG_OPERATION_DESC_INIT;
    gemm.operation = SG_OPERATION_GEMM;
    gemm.gemm = desc;
    sg::update(std::move(found), index, was, gemm, "desc");
  });
}

sg_status sg_graph_set_copy(sg_graph *graph, int32_t index, void *dst, const void *src) {
  return guarded([&] {
    auto found = graph_of(graph);
    const sg::submission was = sg::recorded(*found, index);
    sg_copy_desc copy = sg::recorded_copy(was);
    copy.dst = dst;
    copy.src = src;
    sg_operation_desc desc = SG_OPERATION_DESC_INIT;
    desc.operation = SG_OPERATION_COPY;
    desc.copy = &copy;
    sg::update(std::move(found), index, was, desc, "desc->gemm");
  });
}

sg_status sg_graph_run_async(sg_graph *graph, const sg_submit *submit, sg_job **out_job) {
  if (out_job) *out_job = nullptr;
  return guarded([&] {
    const auto what = graph_of(graph);
    sg::context &on = sg::context_of(what->owner());
    sg::checked_submit order(on, submit);
    if (order.records()) throw sg::error(SG_STATUS_INVALID_ARGUMENT, "submit->graph is given; a run is not recorded");
    order.go_with(on.new_job(), out_job,
                  [&](const ref<sg::job> &parent, const sg::submission_order &in) { what->run(parent, in); });
  });
}
