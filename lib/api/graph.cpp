// SPDX-License-Identifier: Apache-2.0
#include "run/objects/graph.hpp"

#include <streamgemm/graph.h>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/problem_of.hpp"
#include "api/submission.hpp"

namespace sg {
namespace {

ref<graph> graph_of(const sg_graph *handle) { return object_of<graph>(handle, object_type::graph, "graph"); }

recorded_work recorded(const graph &in, std::int32_t index) {
  const std::int32_t size = in.size();
  if (size == 0) throw error(SG_STATUS_INVALID_ARGUMENT, "index is %d; nothing is recorded in the graph", index);
  require_range(index, 0, size - 1, "index");
  return in.at(index);
}

// Says what differs that may not.
void require_same_form(const problem &was, const problem &now, std::int32_t index) {
  const char *what = nullptr;
  if (was.m != now.m || was.n != now.n || was.k != now.k)
    what = "sizes";
  else if (was.op_a != now.op_a || was.op_b != now.op_b)
    what = "ops or layouts";
  else if (was.a.type != now.a.type || was.c.type != now.c.type || was.compute != now.compute)
    what = "types or compute";
  else if (was.a.ld != now.a.ld || was.b.ld != now.b.ld || was.c.ld != now.c.ld)
    what = "leading dimensions";
  else if (was.bias.rows != now.bias.rows || was.bias.cols != now.bias.cols || was.activation != now.activation)
    what = "bias or activation";
  if (what)
    throw error(SG_STATUS_INVALID_ARGUMENT, "desc differs from submission %d of the graph in its %s", index, what);
}

void set_gemm(ref<graph> in, std::int32_t index, const sg_gemm_desc *desc) {
  const recorded_work was = recorded(*in, index);
  if (!was.is_product)
    throw error(SG_STATUS_INVALID_ARGUMENT, "index is %d, which is not a product by sg_gemm_async", index);
  require(desc, "desc");
  const sg_gemm_desc d = options_of(desc, SG_GEMM_DESC_INIT, "desc");
  context &on = context_of(in->owner());
  checked_gemm product = check_gemm(on.memory(), d, {}, true, "desc");
  require_same_form(was.shape, product.shape, index);
  checked_submit order(on, std::move(in), index);
  order.about(product.shape, was.request);
  if (product.nothing_to_do) return order.go(on.new_job(), nullptr, 0, nullptr);
  const auto plan = on.plan_for(&product.shape, 1, request_for(d, product.shape, was.request));
  submit_product(on, std::move(product), plan, order, nullptr);
}

void set_copy(ref<graph> in, std::int32_t index, void *dst, const void *src) {
  const recorded_work was = recorded(*in, index);
  if (was.kind != work_kind::copy) throw error(SG_STATUS_INVALID_ARGUMENT, "index is %d, which is not a copy", index);
  context &on = context_of(in->owner());
  checked_submit order(on, std::move(in), index);
  const auto size = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  submit_copy(on, dst, size(was.copy.dst_pitch), src, size(was.copy.src_pitch), "width", size(was.copy.width),
              size(was.copy.height), order, nullptr);
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

sg_status sg_graph_set_gemm(sg_graph *graph, int32_t index, const sg_gemm_desc *desc) {
  return guarded([&] { sg::set_gemm(graph_of(graph), index, desc); });
}

sg_status sg_graph_set_copy(sg_graph *graph, int32_t index, void *dst, const void *src) {
  return guarded([&] { sg::set_copy(graph_of(graph), index, dst, src); });
}

sg_status sg_graph_run_async(sg_graph *graph, const sg_submit *submit, sg_job **out_job) {
  if (out_job) *out_job = nullptr;
  return guarded([&] {
    const auto what = graph_of(graph);
    sg::context &on = sg::context_of(what->owner());
    sg::checked_submit order(on, submit);
    if (order.records()) throw sg::error(SG_STATUS_INVALID_ARGUMENT, "submit->graph is given; a run is not recorded");
    order.go(*what, on.new_job(), out_job);
  });
}
