// SPDX-License-Identifier: Apache-2.0
#include "run/objects/graph.hpp"

#include <streamgemm/graph.h>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/gemm/gemm.hpp"
#include "api/operations/operations.hpp"
#include "api/submission/submission.hpp"

namespace sg {
namespace {

ref<graph> graph_of(const sg_graph *handle) { return object_of<graph>(handle, object_type::graph, "graph"); }

submission recorded(const graph &in, std::int32_t index) {
  const std::int32_t size = in.size();
  if (size == 0) throw error(SG_STATUS_INVALID_ARGUMENT, "@index is %d; nothing is recorded in the graph", index);
  require_range(index, 0, size - 1, "index");
  return in.at(index);
}

sg_copy_desc recorded_copy(const submission &was) noexcept {
  const auto size = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  sg_copy_desc copy = SG_COPY_DESC_INIT;
  if (!was.program) return copy;  // recorded without sizes
  const schedule &s = *was.program->schedule;
  const copy_shape shape = shape_of_copy(s.buffers, s.commands[0]);
  copy.width = size(shape.width);
  copy.height = size(shape.height);
  copy.dst_pitch = size(shape.dst_pitch);
  copy.src_pitch = size(shape.src_pitch);
  return copy;
}

void update_copy(context &on, const void *desc, const submission &was, std::int32_t index, checked_submit &order) {
  const auto *const copy = static_cast<const sg_copy_desc *>(desc);
  require(copy, "operation->desc");
  const sg_copy_desc given = options_of(copy, "operation->desc"), known = recorded_copy(was);
  const auto require_same = [index](std::uint64_t now, std::uint64_t before, const char *name) {
    if (now != before)
      throw error(SG_STATUS_INVALID_ARGUMENT, "@operation->desc->%s is %llu; submission %d of the graph has %llu", name,
                  static_cast<unsigned long long>(now), index, static_cast<unsigned long long>(before));
  };
  const bool is_empty = known.width == 0;
  if (!is_empty || given.height != 0) require_same(given.width, known.width, "width");
  if (!is_empty) require_same(given.height, known.height, "height");
  if (known.height > 1) {
    require_same(given.dst_pitch, known.dst_pitch, "dst_pitch");
    require_same(given.src_pitch, known.src_pitch, "src_pitch");
  }
  submit_copy(on, given.dst, known.dst_pitch, given.src, known.src_pitch, "width", known.width, known.height, order,
              nullptr);
}

// `name`: of the descriptor in messages.
void update(ref<graph> in, std::int32_t index, const submission &was, const sg_operation_desc &given,
            const char *name) {
  const operation_entry &wanted = entry_of(given.operation);
  if (given.operation == SG_OPERATION_MARKER)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@operation->operation is %d, a marker, which has no operands",
                int{given.operation});
  if (was.operation != given.operation)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@index is %d, which is %s and not %s", index, entry_of(was.operation).name,
                wanted.name);
  context &on = context_of(in->owner());
  checked_submit order(on, std::move(in), index, was);
  // Their recorded sizes are those of the submission.
  if (given.operation == SG_OPERATION_GEMM) return update_gemm(on, given, was, index, name, order);
  if (given.operation == SG_OPERATION_COPY) return update_copy(on, given.desc, was, index, order);
  wanted.submit(on, given, name, order, nullptr);
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

sg_status sg_graph_update(sg_graph *graph, int32_t index, const sg_operation_desc *operation) {
  return guarded([&] {
    auto found = graph_of(graph);
    const sg::submission was = sg::recorded(*found, index);
    sg::require(operation, "operation");
    sg::update(std::move(found), index, was, sg::options_of(operation, "operation"), "operation->desc");
  });
}

sg_status sg_graph_run_async(sg_graph *graph, const sg_submit *submit, sg_job **out_job) {
  if (out_job) *out_job = nullptr;
  return guarded([&] {
    const auto what = graph_of(graph);
    sg::context &on = sg::context_of(what->owner());
    sg::checked_submit order(on, submit);
    if (order.records()) throw sg::error(SG_STATUS_INVALID_ARGUMENT, "@submit->graph is given; a run is not recorded");
    order.go_with(on.new_job(), out_job,
                  [&](const ref<sg::job> &parent, const sg::submission_order &in) { what->run(parent, in); });
  });
}

sg_status sg_graph_run(sg_graph *graph, const sg_submit *submit) {
  return sg::submit_and_wait([&](sg_job **out_job) { return sg_graph_run_async(graph, submit, out_job); });
}
