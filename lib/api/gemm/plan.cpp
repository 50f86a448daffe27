// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/plan.h>

#include <algorithm>
#include <string>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/gemm/place_gemm.hpp"
#include "api/gemm/problem_of.hpp"
#include "api/gemm/submit_gemm.hpp"
#include "plan/gemm/gemm_form.hpp"
#include "plan/schedule/describe.hpp"
#include "plan/schedule/lanes.hpp"
#include "plan/schedule/simulate.hpp"
#include "trace/exporters.hpp"

namespace sg {

namespace {

// A plan that a caller holds.
class prepared_plan final : public object {
 public:
  // `shape`: with the memory spaces of the context.
  prepared_plan(ref<job_sink> owner, const problem &shape, std::shared_ptr<const program> compiled)
      : object(object_type::plan), owner_(std::move(owner)), shape_(shape), program_(std::move(compiled)) {}

  const ref<job_sink> &owner() const noexcept { return owner_; }
  const problem &shape() const noexcept { return shape_; }
  const schedule &commands() const noexcept { return *program_->schedule; }
  const machine_model &machine() const noexcept { return context_of(*owner_).machine(); }
  const std::shared_ptr<const program> &compiled() const noexcept { return program_; }

 private:
  const ref<job_sink> owner_;
  const problem shape_;
  const std::shared_ptr<const program> program_;
};

ref<prepared_plan> prepared_plan_of(const sg_plan *handle) {
  return object_of<prepared_plan>(handle, object_type::plan, "plan");
}

operand_spaces spaces_of(const problem &p, bool by_rows) {
  return by_rows ? operand_spaces{p.b.space.kind(), p.a.space.kind(), p.c.space.kind(), p.bias.space.kind()}
                 : operand_spaces{p.a.space.kind(), p.b.space.kind(), p.c.space.kind(), p.bias.space.kind()};
}

void copy_spaces(const problem &from, problem &to) {
  to.a.space = from.a.space;
  to.b.space = from.b.space;
  to.c.space = from.c.space;
  to.bias.space = from.bias.space;
}

// Names the first difference between a plan's problem and the submitted one.
void require_as_planned(const problem &planned, const problem &given) {
  if (planned == given) return;
  const char *what = "batch, compute or pointer arrays";
  if (planned.m != given.m || planned.n != given.n || planned.k != given.k)
    what = "sizes";
  else if (planned.op_a != given.op_a || planned.op_b != given.op_b)
    what = "ops or layouts";
  else if (planned.no_multiply != given.no_multiply)
    what = "alpha (0 or not)";
  else if (planned.beta_zero != given.beta_zero)
    what = "beta (0 or not)";
  else if (planned.a.type != given.a.type || planned.c.type != given.c.type)
    what = "types";
  else if (planned.a.ld != given.a.ld || planned.b.ld != given.b.ld || planned.c.ld != given.c.ld)
    what = "leading dimensions";
  else if (planned.bias.rows != given.bias.rows || planned.bias.cols != given.bias.cols ||
           planned.activation != given.activation)
    what = "bias or activation";
  else if (planned.a.space != given.a.space || planned.b.space != given.b.space || planned.c.space != given.c.space ||
           planned.bias.space != given.bias.space)
    what = "memory of the operands";
  throw error(SG_STATUS_INVALID_ARGUMENT, "@desc differs from the plan in its %s", what);
}

std::string text_of(const prepared_plan &plan, sg_plan_format format) {
  const schedule &s = plan.commands();
  const auto history = [&] {
    const program &made = *plan.compiled();
    if (made.is_spread())
      throw error(SG_STATUS_UNSUPPORTED,
                  "the plan is of several devices: @format can be SG_PLAN_TEXT, SG_PLAN_JSON or SG_PLAN_TIMELINE");
    return trace::history_of_plan({1, 1, made.schedule, made.what, made.request,
                                   std::make_shared<const device_model>(plan.machine().device(made.device()))});
  };
  switch (format) {
    case SG_PLAN_TEXT: return describe_text(s, plan.machine());
    case SG_PLAN_JSON: return describe_json(s, plan.machine());
    case SG_PLAN_TIMELINE: return timeline_text(s, simulate(s, plan.machine()));
    case SG_PLAN_HTML: return trace::html(history());
    case SG_PLAN_SVG: return trace::svg(history());
  }
  throw error(SG_STATUS_INVALID_ARGUMENT, "@format is %d, which is no format", int{format});
}

}  // namespace
}  // namespace sg

using sg::guarded;
using sg::object_type;
using sg::prepared_plan_of;
using sg::ref;

sg_status sg_plan_create(sg_context *context, const sg_gemm_desc *desc, const sg_plan_options *options,
                         sg_plan **out_plan) {
  if (out_plan) *out_plan = nullptr;
  return guarded([&] {
    auto on = sg::context_of(context);
    sg::require(desc, "desc");
    sg::require(out_plan, "out_plan");
    const sg_gemm_desc d = sg::options_of(desc, SG_GEMM_DESC_INIT, "desc");
    sg::operand_spaces known;
    const auto wanted = sg::check_plan_options(options, "options", known);
    const sg::checked_gemm gemm = sg::check_gemm(on->memory(), d, known, false, "desc");
    if (gemm.nothing_to_do)
      throw sg::error(SG_STATUS_INVALID_ARGUMENT, "@desc leaves nothing to do (%lld x %lld x %lld), so it has no plan",
                      static_cast<long long>(d.c.rows), static_cast<long long>(d.c.cols),
                      static_cast<long long>(gemm.shape.k));
    auto plan = sg::plan_gemm(*on, gemm.shape, sg::request_for(d, gemm.shape, wanted));
    auto made = ref<sg::object>::adopt(new sg::prepared_plan(on, gemm.shape, std::move(plan)));
    *out_plan = sg::handle_of<sg_plan>(sg::make_handle(std::move(made)));
  });
}

sg_status sg_plan_retain(sg_plan *plan) { return sg::retain(plan, object_type::plan, "plan"); }

sg_status sg_plan_release(sg_plan *plan) { return sg::release(plan, object_type::plan, "plan"); }

sg_status sg_plan_predict(sg_plan *handle, sg_plan_prediction *out_prediction) {
  return guarded([&] {
    const auto plan = prepared_plan_of(handle);
    const sg::schedule &s = plan->commands();
    sg_plan_prediction p = SG_PLAN_PREDICTION_INIT;
    p.predicted_seconds = s.predicted_seconds;
    p.bound_seconds = s.bound_seconds;
    for (const sg::interval &i : sg::simulate(s, plan->machine()).commands) p.serial_seconds += i.end - i.start;
    p.flops = s.flops;
    p.bytes_in = static_cast<std::uint64_t>(s.bytes_in);
    p.bytes_out = static_cast<std::uint64_t>(s.bytes_out);
    p.device_bytes = static_cast<std::uint64_t>(s.device_bytes);
    p.staging_bytes = static_cast<std::uint64_t>(s.staging_bytes);
    p.commands = static_cast<std::int32_t>(s.commands.size());
    p.compute_lanes = s.lanes[static_cast<int>(sg::lane_kind::compute)];
    p.devices = static_cast<std::int32_t>(sg::devices_of(s).size());
    p.bytes_peer = static_cast<std::uint64_t>(s.bytes_peer);
    sg::copy_text(p.strategy, sizeof p.strategy, s.strategy.c_str());
    sg::write_out(out_prediction, p, "out_prediction");
  });
}

sg_status sg_plan_device_size(sg_plan *handle, int32_t device, uint64_t *out_bytes) {
  if (out_bytes) *out_bytes = 0;
  return guarded([&] {
    const auto plan = prepared_plan_of(handle);
    sg::require_device(sg::context_of(*plan->owner()), device, 0, "device");
    sg::require(out_bytes, "out_bytes");
    const sg::program &made = *plan->compiled();
    for (std::size_t i = 0; i < made.devices.size(); ++i)
      if (made.devices[i] == sg::device_index(device)) *out_bytes = static_cast<std::uint64_t>(made.arenas[i].device);
  });
}

sg_status sg_plan_describe(sg_plan *handle, sg_plan_format format, char *text, uint64_t size, uint64_t *out_size) {
  if (out_size) *out_size = 0;
  if (text && size > 0) text[0] = '\0';
  return guarded([&] {
    const auto plan = prepared_plan_of(handle);
    if (size > 0) sg::require(text, "text");
    const std::string whole = sg::text_of(*plan, format);
    if (out_size) *out_size = whole.size() + 1;
    if (size > 0) sg::copy_text(text, size, whole.c_str());
  });
}

sg_status sg_plan_run_async(sg_plan *handle, const sg_gemm_desc *desc, const sg_submit *submit, sg_job **out_job) {
  if (out_job) *out_job = nullptr;
  return guarded([&] {
    const auto plan = prepared_plan_of(handle);
    const auto &compiled = plan->compiled();
    sg::require(desc, "desc");
    const sg_gemm_desc d = sg::options_of(desc, SG_GEMM_DESC_INIT, "desc");
    sg::context &on = sg::context_of(*plan->owner());
    sg::checked_submit order(on, submit);
    order.require_within_limit(*compiled);
    const auto known = sg::spaces_of(plan->shape(), d.c.layout == SG_LAYOUT_ROW_MAJOR);
    sg::checked_gemm gemm = sg::check_gemm(on.memory(), d, known, true, "desc");
    // Untouched operands have no memory space.
    if (gemm.nothing_to_do) sg::copy_spaces(plan->shape(), gemm.shape);
    sg::require_as_planned(plan->shape(), gemm.shape);
    gemm.shape = sg::seen_by(on, *compiled, gemm.shape);
    if (order.records()) {
      order.note_request(sg::request_for(d, gemm.shape, compiled->request));  // in terms of the caller's C
      order.note(SG_OPERATION_GEMM, sg::gemm_form(sg::fixed_in_updates(gemm.shape)), "desc");
    }
    if (gemm.nothing_to_do) return order.go(on.new_job(), nullptr, 0, out_job);
    sg::submit_gemm(on, std::move(gemm), compiled, order, out_job);
  });
}
