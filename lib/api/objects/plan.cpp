// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/plan.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/gemm/planned_gemm.hpp"
#include "api/operations/operations.hpp"
#include "api/submission/submission.hpp"
#include "api/wait.hpp"
#include "plan/planner.hpp"
#include "plan/schedule/describe.hpp"
#include "plan/schedule/lanes.hpp"
#include "plan/schedule/simulate.hpp"
#include "trace/exporters.hpp"

namespace sg {

namespace {

// A plan that a caller holds.
class prepared_plan final : public object {
 public:
  // `gemm`: that of a plan of one GEMM, with the memory spaces of the context.
  prepared_plan(ref<job_sink> owner, sg_operation operation, std::shared_ptr<const program> compiled,
                const std::optional<problem> &gemm)
      : object(object_type::plan),
        owner_(std::move(owner)),
        operation_(operation),
        program_(std::move(compiled)),
        gemm_(gemm) {}

  const ref<job_sink> &owner() const noexcept { return owner_; }
  sg_operation operation() const noexcept { return operation_; }
  const std::optional<problem> &gemm() const noexcept { return gemm_; }
  const schedule &commands() const noexcept { return *program_->schedule; }
  const machine_model &machine() const noexcept { return context_of(*owner_).machine(); }
  const std::shared_ptr<const program> &compiled() const noexcept { return program_; }
  std::uint64_t number() const noexcept { return number_; }
  // Computed by the first description that shows it.
  std::vector<time_on_devices> on_more_devices() const {
    if (!program_->what) return {};
    {
      const std::lock_guard lock(more_lock_);
      if (more_) return *more_;
    }
    std::vector<time_on_devices> times =
        times_on_more_devices(*program_->what, machine(), program_->request, commands());
    const std::lock_guard lock(more_lock_);
    return more_.emplace(std::move(times));
  }

 private:
  const ref<job_sink> owner_;
  const sg_operation operation_;
  const std::shared_ptr<const program> program_;
  const std::optional<problem> gemm_;
  static inline std::atomic<std::uint64_t> last_number_{0};
  const std::uint64_t number_ = last_number_.fetch_add(1, std::memory_order_relaxed) + 1;
  mutable std::mutex more_lock_;
  mutable std::optional<std::vector<time_on_devices>> more_;
};

ref<prepared_plan> prepared_plan_of(const sg_plan *handle) {
  return object_of<prepared_plan>(handle, object_type::plan, "plan");
}

std::string text_of(const prepared_plan &plan, sg_plan_format format) {
  const schedule &s = plan.commands();
  const auto history = [&] {
    const program &made = *plan.compiled();
    if (made.is_spread())
      throw error(SG_STATUS_UNSUPPORTED,
                  "the plan is of several devices: @format can be SG_PLAN_FORMAT_TEXT, SG_PLAN_FORMAT_JSON or "
                  "SG_PLAN_FORMAT_TIMELINE");
    return trace::history_of_plan(
        {1, 1, made.schedule, made.what, made.request, std::make_shared<const machine_model>(plan.machine())});
  };
  switch (format) {
    case SG_PLAN_FORMAT_TEXT: return describe_text(s, plan.machine(), plan.on_more_devices());
    case SG_PLAN_FORMAT_JSON: return describe_json(s, plan.machine(), plan.on_more_devices());
    case SG_PLAN_FORMAT_TIMELINE: return timeline_text(s, simulate(s, plan.machine()));
    case SG_PLAN_FORMAT_HTML: return trace::html(history());
    case SG_PLAN_FORMAT_SVG: return trace::svg(history());
  }
  throw error(SG_STATUS_INVALID_ARGUMENT, "@format is %d, which is no format", int{format});
}

}  // namespace
}  // namespace sg

using sg::guarded;
using sg::object_type;
using sg::prepared_plan_of;
using sg::ref;

sg_status sg_plan_create(sg_context *context, const sg_operation_desc *operation, const sg_plan_options *options,
                         sg_plan **out_plan) {
  if (out_plan) *out_plan = nullptr;
  return guarded([&] {
    auto on = sg::context_of(context);
    sg::require(operation, "operation");
    sg::require(out_plan, "out_plan");
    const sg_operation_desc given = sg::options_of(operation, "operation");
    if (given.operation == SG_OPERATION_MARKER)
      throw sg::error(SG_STATUS_INVALID_ARGUMENT, "@operation->operation is %d, a marker, which has no plan",
                      int{given.operation});
    std::shared_ptr<const sg::program> made;
    std::optional<sg::problem> gemm;
    if (sg::is_one_gemm(given)) {
      made = sg::plan_one_gemm(*on, given, options, gemm);
    } else {
      sg::checked_submit order(*on, options, made);
      sg::entry_of(given.operation).submit(*on, given, "operation->desc", order, nullptr);
    }
    if (!made) throw sg::error(SG_STATUS_INVALID_ARGUMENT, "@operation->desc leaves nothing to do, so it has no plan");
    auto plan = ref<sg::object>::adopt(new sg::prepared_plan(on, given.operation, std::move(made), gemm));
    *out_plan = sg::handle_of<sg_plan>(sg::make_handle(std::move(plan)));
  });
}

sg_status sg_plan_retain(sg_plan *plan) { return sg::retain(plan, object_type::plan, "plan"); }

sg_status sg_plan_release(sg_plan *plan) { return sg::release(plan, object_type::plan, "plan"); }

sg_status sg_plan_get_prediction(sg_plan *handle, sg_plan_prediction *out_prediction) {
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
  sg::clear_text(text, size, out_size);
  return guarded([&] {
    const auto plan = prepared_plan_of(handle);
    sg::write_text(sg::text_of(*plan, format).c_str(), text, size, out_size);
  });
}

sg_status sg_plan_run_async(sg_plan *handle, const sg_operation_desc *operation, const sg_submit *submit,
                            sg_job **out_job) {
  if (out_job) *out_job = nullptr;
  return guarded([&] {
    const auto plan = prepared_plan_of(handle);
    sg::require(operation, "operation");
    const sg_operation_desc given = sg::options_of(operation, "operation");
    const sg::operation_entry &entry = sg::entry_of(given.operation);
    if (given.operation != plan->operation())
      throw sg::error(SG_STATUS_INVALID_ARGUMENT, "@operation->operation is %d, %s; the plan is of %s",
                      int{given.operation}, entry.name, sg::entry_of(plan->operation()).name);
    sg::context &on = sg::context_of(*plan->owner());
    sg::checked_submit order(on, submit);
    order.run(plan->compiled(), plan->number());
    if (plan->gemm()) return sg::run_planned_gemm(on, given, *plan->gemm(), plan->compiled(), order, out_job);
    entry.submit(on, given, "operation->desc", order, out_job);
  });
}

sg_status sg_plan_run(sg_plan *plan, const sg_operation_desc *operation, const sg_submit *submit) {
  return sg::submit_and_wait([&](sg_job **out_job) { return sg_plan_run_async(plan, operation, submit, out_job); });
}
