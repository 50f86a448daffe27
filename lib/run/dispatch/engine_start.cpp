// SPDX-License-Identifier: Apache-2.0
// Ready jobs: assigns them to lanes.
#include <new>

#include "base/error.hpp"
#include "run/dispatch/engine.hpp"
#include "run/dispatch/traced_commands.hpp"

namespace sg {

// A full lane delays no other partition's jobs.
void engine::start_in_partitions() noexcept {
  if (ready_in_partitions_.empty()) return;
  ready_in_partitions_.keep([&](job &j) {
    if (complete_unrun(j)) return false;
    lane_slot *const slot = lane_set::with_room(*j.partition_lane);
    if (slot)
      start_single(j, *slot);
    else
      lane_full_.store(true, std::memory_order_relaxed);
    return !slot;
  });
}

bool engine::start_ready(int priority, bool held) noexcept {
  auto &classes = ready_[static_cast<std::size_t>(priority)];
  for (int what = 0; what < work_classes; ++what) {
    ready_jobs &list = classes[static_cast<std::size_t>(what)];
    if (what == computing && held) continue;
    while (!list.empty() && start_front(list, static_cast<work_class>(what))) {
    }
  }
  return held || (!classes[computing].empty() && lanes_.holds_up_lower(priority - 1));
}

bool engine::start_front(ready_jobs &from, work_class what) noexcept {
  job &next = from.front();
  if (next.cancel_requested() || next.dependency_failed()) {
    from.pop();
    return complete_unrun(next);
  }
  if (next.is_run) {
    // Memory refused to a job of higher priority is reserved for it.
    if (memory_refused_) return false;
    try {
      next.acquire_run();
    } catch (const std::bad_alloc &) {
      next.fail(SG_STATUS_OUT_OF_MEMORY, "out of host memory for the state of the job's commands");
      from.pop();
      next.work_completed();
      return true;
    }
    if (!start_run(next)) return false;
    from.pop();
    advance(next);
    return true;
  }
  lane_demand wanted{.what = what, .priority = next.priority, .waiting = from.size(), .behind = next.behind()};
  if (next.program->computes) {
    wanted.alone = next.program->wants_core;
    wanted.small = coalesce_ && next.program->small;
    wanted.urgent = hurried_;
    wanted.share = next.program->share;
    wanted.seconds = next.program->schedule->predicted_seconds;
    wanted.work_seconds = next.program->work_seconds;
  } else if (next.program->schedule->commands[0].where.kind == lane_kind::copy_peer) {
    wanted.share = 0;  // by a copy engine, beside what computes
  }
  lane_slot *slot = lanes_.find(wanted);
  if (!slot) {
    if (wanted.behind) lane_full_.store(true, std::memory_order_relaxed);
    return false;
  }
  from.pop();
  if (wanted.small && !from.empty())
    gather(from, next, *slot);
  else
    start_single(next, *slot);
  lanes_.launched(wanted.small);
  return true;
}

void engine::start_single(job &ready, lane_slot &slot) noexcept {
  ready.plain = false;
  trace_schedule(ready);
  inflight_command &f = ready.single;
  f.begin(this, ready, 0, &slot, 2);
  const program &what = *ready.program;
  const command &c = what.schedule->commands[0];
  f.share = what.computes && !ready.partition_lane ? what.share : 0;  // of the shared lanes
  lanes_.entered(slot, f.share);
  bool enqueued = false;
  try {
    lanes_.follow(slot, ready.behind(), ready.behind_marks());
    device_.begin_at(slot.stream, ready.ready_ns());
    enqueued = launcher_.launch(f, c, what.computes ? lanes_.units_for(ready.priority, f.share, ready.units) : 0);
  } catch (...) {
    const sg_status status = status_of_current_exception();
    complete_calls(f, status, last_error(), 0, 0, 1);
  }
  if (enqueued && lanes_.device_ordered()) {
    f.predicted_ns = what.predicted_ns();
    const std::int64_t end_ns = lanes_.expect(slot, f.predicted_ns);
    expected_end_ns_.store(end_ns, std::memory_order_relaxed);
    ready.expect_end(end_ns, f.predicted_ns);
    ready.issued(bit_of_lane(slot.index),
                 is_copy(c) ? lanes_.mark_copy(slot, bytes_of_copy(what.schedule->buffers, c)) : copy_marks());
  }
  if (ready.native) ready.announce_issued();
  // This function's own count: the job cannot complete before it is issued.
  complete_calls(f, SG_STATUS_OK, nullptr, 0, 0, 1);
}

}  // namespace sg
