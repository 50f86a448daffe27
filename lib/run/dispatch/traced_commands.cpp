// SPDX-License-Identifier: Apache-2.0
#include "run/dispatch/traced_commands.hpp"

#include <algorithm>

#include "run/job/job_home.hpp"
#include "trace/command_event.hpp"
#include "trace/recorder.hpp"

namespace sg {

namespace {

trace::event command_of(const job &owner, trace::event_kind kind = trace::event_kind::command) noexcept {
  return {kind, owner.owner().number(), owner.trace_number};
}

void in_lane(trace::event &e, const inflight_command &f, std::int64_t not_before_ns) noexcept {
  e.body.start_ns = std::max(f.start_ns, not_before_ns);
  e.body.end_ns = std::max(f.end_ns, e.body.start_ns);
  e.body.lane = f.lane ? trace::lane_of(number_of(f.lane->device), f.lane->index) : trace::no_lane;
}

void describe(trace::event &e, const job &owner, std::uint32_t index) noexcept {
  const schedule &s = *owner.program->schedule;
  trace::describe_command(e.body, s.buffers, s.commands[index]);
  e.body.index = index;
}

// The sizes of GEMMs in one call are shown where all are alike.
void count_gemms(trace::event &e, std::int64_t gemms, bool are_alike) noexcept {
  e.body.count = static_cast<std::uint32_t>(std::min<std::int64_t>(gemms, UINT32_MAX));
  if (!are_alike) e.body.m = e.body.n = e.body.k = 0;
}

bool alike(const schedule &s, std::uint32_t x, std::uint32_t y) noexcept {
  const ops::gemm *const one = s.commands[x].as<ops::gemm>(), *const other = s.commands[y].as<ops::gemm>();
  return one && other && one->m == other->m && one->n == other->n && one->k == other->k;
}

}  // namespace

void trace_schedule(const job &starting) noexcept {
  const program &what = *starting.program;
  // Schedules of several devices are not shown beside what ran.
  if (starting.trace_number == 0 || !trace::recording_is_on() || !what.computes || what.is_spread()) return;
  trace::note_schedule(starting.trace_number, starting.owner().number(), what.schedule, what.what, what.request);
}

void trace_single(const inflight_command &f) noexcept {
  const job &owner = *f.owner;
  if (f.end_ns == 0) return;  // it did not run, or the backend does not time
  trace::event e = command_of(owner);
  in_lane(e, f, owner.ready_ns());
  describe(e, owner, 0);
  trace::record(e);
}

void trace_of_run(const inflight_command &f, std::int64_t not_before_ns) noexcept {
  if (!f.lane || f.end_ns == 0) return;  // staging is recorded on its thread
  trace::event e = command_of(*f.owner);
  describe(e, *f.owner, f.index);
  in_lane(e, f, not_before_ns);
  if (f.batch) {
    const schedule &s = *f.owner->program->schedule;
    std::int64_t gemms = 0;
    for (const std::uint32_t each : f.batch->commands) gemms += s.commands[each].views[ops::gemm::c].items;
    count_gemms(e, gemms, std::all_of(f.batch->commands.begin(), f.batch->commands.end(), [&](std::uint32_t each) {
                  return alike(s, each, f.index);
                }));
  }
  trace::record(e);
}

void trace_batch(const batch &b, std::uint64_t context) noexcept {
  const auto traced =
      std::find_if(b.members.begin(), b.members.end(), [](const job *x) { return x->trace_number != 0; });
  if (traced == b.members.end() || b.inflight.end_ns == 0) return;
  trace::event e(trace::event_kind::command, context, 0);
  describe(e, **traced, 0);
  in_lane(e, b.inflight, 0);
  std::int64_t gemms = 0;
  bool are_alike = true;
  for (const job *member : b.members) {
    const command &only = member->program->schedule->commands[0];
    const ops::gemm &shape = *only.as<ops::gemm>();
    gemms += only.views[ops::gemm::c].items;
    are_alike = are_alike && shape.m == e.body.m && shape.n == e.body.n && shape.k == e.body.k;
  }
  count_gemms(e, gemms, are_alike);
  trace::record(e);
}

void trace_staging(const inflight_command &f, std::int64_t start_ns) noexcept {
  trace::event e = command_of(*f.owner, trace::event_kind::staging);
  describe(e, *f.owner, f.index);
  e.body.start_ns = start_ns;
  e.body.end_ns = monotonic_ns();
  e.body.lane = trace::no_lane;
  trace::record(e);
}

void trace_here(const job &work, std::int64_t start_ns, std::int64_t end_ns) noexcept {
  trace::event e = command_of(work);
  describe(e, work, 0);
  e.body.start_ns = start_ns;
  e.body.end_ns = end_ns;
  e.body.lane = trace::no_lane;
  if (const gemm_summary all = work.program->what->gemms(); all.problems > 0) {
    e.body.m = static_cast<std::uint32_t>(all.m);  // of which a command may be a part
    e.body.n = static_cast<std::uint32_t>(all.n);
    e.body.k = static_cast<std::uint32_t>(all.k);
    count_gemms(e, all.items, all.problems == 1);
  }
  trace::record(e);
}

}  // namespace sg
