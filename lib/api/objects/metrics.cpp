// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/metrics.h>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "run/job/process.hpp"

namespace sg {
namespace {

double seconds_passed(std::int64_t ns) noexcept { return double(ns) * 1e-9; }

sg_context_metrics metrics_from(const context_counters &from) {
  sg_context_metrics m = SG_CONTEXT_METRICS_INIT;
  const auto &in = from.lanes[static_cast<std::size_t>(lane_kind::copy_in)],
             &out = from.lanes[static_cast<std::size_t>(lane_kind::copy_out)],
             &compute = from.lanes[static_cast<std::size_t>(lane_kind::compute)];
  m.jobs_submitted = from.submitted;
  m.jobs_completed = from.succeeded + from.failed + from.cancelled;
  m.jobs_failed = from.failed;
  m.jobs_cancelled = from.cancelled;
  m.jobs_in_flight = from.in_flight;
  m.queued_low = from.queued[0];
  m.queued_normal = from.queued[1];
  m.queued_high = from.queued[2];
  m.commands = in.commands + out.commands + compute.commands;
  m.bytes_in = in.bytes;
  m.bytes_out = out.bytes;
  m.compute_seconds = seconds_passed(compute.busy_ns);
  m.copy_in_seconds = seconds_passed(in.busy_ns);
  m.copy_out_seconds = seconds_passed(out.busy_ns);
  m.elapsed_seconds = seconds_passed(from.elapsed_ns);
  m.device_bytes = from.device_bytes;
  m.pinned_bytes = from.pinned_bytes;
  return m;
}

}  // namespace
}  // namespace sg

sg_status sg_context_get_metrics(sg_context *handle, sg_context_metrics *out_metrics) {
  return sg::guarded([&] {
    const auto context = sg::context_of(handle);
    sg::write_out(out_metrics, sg::metrics_from(context->counters()), "out_metrics");
  });
}

sg_status sg_metrics_text(char *text, uint64_t size, uint64_t *out_size) {
  sg::clear_text(text, size, out_size);
  return sg::guarded(
      [&] { sg::write_text(sg::open_metrics_text(sg::counters_of_homes()).c_str(), text, size, out_size); });
}
