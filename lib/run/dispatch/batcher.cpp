// SPDX-License-Identifier: Apache-2.0
// The engine's batcher: queued jobs of one small GEMM each, and small GEMMs of one run, go to the backend as one call.
// The jobs complete one by one. Submissions are never delayed to form a batch where the device is idle.
#include <algorithm>
#include <array>
#include <functional>
#include <new>

#include "base/error.hpp"
#include "base/log.hpp"
#include "run/dispatch/engine.hpp"
#include "run/dispatch/traced_commands.hpp"
#include "run/job/job_home.hpp"
#include "run/program/batching.hpp"
#include "trace/recorder.hpp"

namespace sg {

namespace {

// Members whose records are prefetched while an earlier one completes.
constexpr std::size_t fetched_ahead = 8;

// Moves the members to be launched unbatched to the front and returns their number; the order is otherwise kept.
std::size_t partition_unbatched(std::vector<job *> &members) noexcept {
  // With few units, other GEMMs cannot share the depth.
  const auto least_of = [](const job *member) { return member->units > 0 ? 1 : member->program->min_batch_size; };
  const std::size_t first = least_of(members.front());
  if (std::all_of(members.begin(), members.end(), [&](const job *member) { return least_of(member) == first; }))
    return first > members.size() ? members.size() : 0;  // equal members, the usual case, need no sorting
  std::array<std::size_t, most_members> least;
  const auto end = std::transform(members.begin(), members.end(), least.begin(), least_of);
  std::sort(least.begin(), end, std::greater<>());
  const std::size_t unbatched = faster_unbatched(members.size(), [&](std::size_t i) { return least[i]; });
  if (unbatched > 0 && unbatched < members.size())  // the last unbatched one needs a larger batch than any in it
    std::stable_partition(members.begin(), members.end(),
                          [&](const job *member) { return least_of(member) >= least[unbatched - 1]; });
  return unbatched;
}

}  // namespace

// Starts `first`, batched with other queued jobs.
void engine::gather(ready_jobs &from, job &first, lane_slot &slot) noexcept {
  batch *made = nullptr;
  try {
    made = &batches_.acquire();
    made->members.push_back(&first);
  } catch (const std::bad_alloc &) {
    if (made) batches_.release(*made);
    return start_single(first, slot);
  }
  // On a core a batch is just long enough to outweigh its dispatch: the other lanes need work too.
  const auto lanes = static_cast<std::size_t>(lanes_.compute_lanes());
  const auto worthwhile =
      static_cast<std::size_t>(lane_set::worth_a_step_ns / 2 / std::max<std::int64_t>(1, first.program->work_ns()));
  const std::size_t waiting = from.size() + 1;
  std::size_t most = std::min(most_members, std::max(from.size() / lanes, worthwhile) + 1);
  if (lanes_.device_ordered())  // a waiting thread may submit nothing more
    most = std::min(most_members, hurried_ ? waiting : lanes_.in_whole_waves(waiting, first.program->share));
  double seconds = first.program->work_seconds;
  std::int64_t items = first.program->items;
  from.gather(
      most - 1,
      [&](const job &candidate) {
        return candidate.program && candidate.program->small && batchable(*candidate.program, *first.program) &&
               candidate.units == first.units && (candidate.behind() == 0 || candidate.behind() == first.behind()) &&
               !candidate.cancel_requested() && !candidate.dependency_failed();
      },
      [&](job &member) {
        try {
          made->members.push_back(&member);
        } catch (const std::bad_alloc &) {
          from.push(member);
          return false;
        }
        seconds += member.program->work_seconds;
        items += member.program->items;
        return items < most_items && (lanes_.device_ordered() || seconds < core_batch_seconds);
      });
  if (made->members.size() == 1) {
    batches_.release(*made);
    return start_single(first, slot);
  }
  send_out(from, *made, slot);
}

// Launches a batch, and the unbatched jobs one by one; the first one has waited longest.
void engine::send_out(ready_jobs &from, batch &b, lane_slot &slot) noexcept {
  job &first = *b.members.front();
  const lane_bits behind = first.behind();
  const std::size_t unbatched = partition_unbatched(b.members);
  if (unbatched == 0) return launch_batch(b, behind, slot);
  if (unbatched == b.members.size()) return start_unbatched(from, b, &slot);
  batch *rest = nullptr;
  try {
    rest = &batches_.acquire();
    rest->members.assign(b.members.begin() + static_cast<std::ptrdiff_t>(unbatched), b.members.end());
    b.members.resize(unbatched);
  } catch (const std::bad_alloc &) {
    if (rest) batches_.release(*rest);
    return launch_batch(b, behind, slot);
  }
  if (b.members.front() == &first) {
    start_single(first, slot);
    b.members.erase(b.members.begin());
  }
  // Then the short ones, which complete soon.
  if (rest->members.size() > 1) {
    launch_batch(*rest, behind, slot);
  } else {
    start_single(*rest->members.front(), slot);
    batches_.release(*rest);
  }
  start_unbatched(from, b, nullptr);
}

// Starts unbatched jobs while lanes have room, the first in the granted lane, if any. The others return to the front of
// the queue.
void engine::start_unbatched(ready_jobs &from, batch &b, lane_slot *granted) noexcept {
  std::size_t next = 0;
  for (; next < b.members.size(); ++next) {
    job &member = *b.members[next];
    lane_slot *const slot = granted ? granted
                                    : lanes_.find({.priority = member.priority,
                                                   .share = member.program->share,
                                                   .seconds = member.program->schedule->predicted_seconds,
                                                   .behind = member.behind()});
    granted = nullptr;
    if (!slot) break;
    start_single(member, *slot);
  }
  for (std::size_t i = b.members.size(); i-- > next;) {
    if (b.members[i]->behind()) lane_full_.store(true, std::memory_order_relaxed);
    from.put_back(*b.members[i]);
  }
  batches_.release(b);
}

void engine::launch_batch(batch &b, lane_bits behind, lane_slot &slot) noexcept {
  b.inflight.home = this;
  b.inflight.owner = nullptr;
  b.inflight.lane = &slot;
  b.inflight.predicted_ns = 0;
  b.inflight.backend_calls.store(2, std::memory_order_release);
  std::int64_t ready_ns = 0;
  for (const job *member : b.members) ready_ns = std::max(ready_ns, member->ready_ns());
  lanes_.entered(slot, 0);
  bool enqueued = false, threw = false;
  try {
    lanes_.follow(slot, behind, copy_marks::all());
    device_.begin_at(slot.stream, ready_ns);
    enqueued = launcher_.launch(b, {batch_completed, &b});
  } catch (...) {
    status_of_current_exception();
    threw = true;
  }
  if (enqueued) {
    if (lanes_.device_ordered()) {
      const std::int64_t predicted_ns = b.members.front()->program->predicted_ns();
      const std::int64_t end_ns = lanes_.expect(slot, predicted_ns);
      expected_end_ns_.store(end_ns, std::memory_order_relaxed);
      b.inflight.predicted_ns = predicted_ns;
      for (job *member : b.members) {
        member->expect_end(end_ns, predicted_ns);
        member->issued(bit_of_lane(slot.index), {});
      }
    }
    return release_batch(b);
  }
  // One member may be at fault: launching them one by one shows which.
  if (logs(log_level::info, log_area::fallback))
    log_message(log_level::info, log_area::fallback, "a batch of %zu GEMMs was refused and goes out one by one: %s",
                b.members.size(), threw ? last_error() : device_.ops().last_message(device_.handle()));
  lanes_.left(slot, 0, 0);
  for (job *member : b.members) start_single(*member, slot);
  batches_.release(b);
}

void engine::batch_completed(void *user, const sg_backend_result *result) {
  batch &b = *static_cast<batch *>(user);
  if (b.inflight.owner) return run_batch_completed(b, *result);
  b.inflight.start_ns = result->start_ns;
  b.inflight.end_ns = result->end_ns;
  for (std::size_t i = 0; i < b.members.size(); ++i) {
    const sg_status own = b.statuses.empty() ? SG_STATUS_OK : b.statuses[i];
    const sg_status status = result->status != SG_STATUS_OK ? result->status : own;
    if (status != SG_STATUS_OK) b.members[i]->fail(status, result->message ? result->message : name_of(status));
  }
  if (result->status != SG_STATUS_OK) b.inflight.home->retire_buffers_if_stuck(b.inflight.lane);
  b.inflight.home->release_batch(b);
}

// A batch of jobs completes when the backend has reported it and its members have been issued.
void engine::release_batch(batch &b) noexcept {
  if (b.inflight.backend_calls.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const auto keep = ref<job_home>::share(&b.members.front()->owner());
  lanes_.awake(b.inflight.lane);
  lanes_.left(*b.inflight.lane, 0, b.inflight.predicted_ns);
  std::int64_t ready_ns = 0;
  for (const job *member : b.members) ready_ns = std::max(ready_ns, member->ready_ns());
  usage_.count(lane_kind::compute, std::max(b.inflight.start_ns, ready_ns), b.inflight.end_ns, 0);
  complete_members(b, *keep);
  batches_.release(b);
  on_lane_notified();
}

void engine::complete_members(batch &b, job_home &home) noexcept {
  if (trace::recording_is_on()) trace_batch(b, home.number());
  const job_home::completion_batch counted(home);
  for (std::size_t i = 0; i < b.members.size(); ++i) {
    if (i + fetched_ahead < b.members.size()) b.members[i + fetched_ahead]->fetch_first_line();
    b.members[i]->completed_in_batch(b.inflight.start_ns, b.inflight.end_ns, b.members.size());
  }
}

// ---- Commands of one run ----

// Number of the run's next commands that may be one call with this one; their calls are prepared.
std::size_t engine::batchable_with(const job &running, std::uint32_t index) noexcept {
  const auto &program = *running.program;
  const auto *const first = program.call_of(index);
  std::size_t count = 0;
  for (std::size_t l = 0; first && l < running.run->lanes.size(); ++l) {
    const auto &list = program.lanes[l].commands;
    for (std::size_t at = running.run->lanes[l].next; at < list.size(); ++at, ++count) {
      const auto *const call = program.call_of(list[at]);
      if (!call || !batchable(call->form, first->form)) break;
    }
  }
  return count;
}

// On cores one lane's GEMMs, just enough to outweigh their dispatch; on a device, and for a program that is one call,
// those of all lanes.
void engine::gather_commands(job &running, std::uint32_t index, batch &into) {
  const auto &program = *running.program;
  const program_run &run = *running.run;
  double seconds = 0;
  std::int64_t items = 0;
  const auto take = [&](std::uint32_t command) {
    if (program.batchable[command] == 0) return false;  // it may not be a GEMM
    const sg_backend_gemm gemm = launcher_.gemm_of(running, command);
    const bool room =
        program.one_call || (items < most_items && (lanes_.device_ordered() || seconds < core_batch_seconds));
    if (!room || (!into.gemms.empty() && !batchable(gemm, into.gemms.front()))) return false;
    into.commands.push_back(command);
    into.gemms.push_back(gemm);
    seconds += program.batchable[command];
    items += gemm.batch;
    return true;
  };
  if (lanes_.device_ordered()) {
    const std::size_t most = std::min<std::size_t>(batchable_with(running, index), most_items);
    into.commands.reserve(most);
    into.gemms.reserve(most);
  }
  for (std::size_t l = 0; l < run.lanes.size(); ++l) {
    if (!lanes_.device_ordered() && !program.one_call && l != run.lane_of[index]) continue;
    const auto &list = program.lanes[l].commands;
    for (std::size_t at = run.lanes[l].next; at < list.size() && take(list[at]); ++at) {
    }
  }
}

bool engine::issue_batch(job &running, std::uint32_t index, lane_slot &slot) noexcept {
  program_run &run = *running.run;
  batch *made = nullptr;
  bool entered = false, enqueued = false;
  try {
    made = &batches_.acquire();
    gather_commands(running, index, *made);
    if (made->commands.size() > 1) {
      begin_lane(running, run.lanes[run.lane_of[index]], slot);
      made->inflight.begin(this, running, index, &slot, 2);
      made->inflight.batch = made;
      made->inflight.commands = static_cast<std::int32_t>(made->commands.size());
      lanes_.entered_of_run(slot);
      entered = true;
      enqueued = launcher_.launch(*made, {batch_completed, made});
    }
  } catch (...) {
    status_of_current_exception();
    if (!made) return false;
    made->commands.clear();
  }
  if (!enqueued) {
    if (entered) lanes_.left_of_run(slot);
    run.unbatched = run.unbatched || made->commands.size() > 1;
    batches_.release(*made);
    return false;
  }
  for (const std::uint32_t command : made->commands) {
    run.mark_issued(command);
    run.inflight[command].end_ns = 0;  // the batch's end time is not the member's
    // Later commands of the other lanes must follow the run's predecessors themselves.
    if (!running.follows_on_device) run.lanes[run.lane_of[command]].started = true;
  }
  run.in_flight += made->inflight.commands;
  complete_calls(made->inflight, SG_STATUS_OK, nullptr, 0, 0,
                 1);  // this function's own: the batch cannot complete before it is counted
  return true;
}

void engine::run_batch_completed(batch &b, const sg_backend_result &result) noexcept {
  for (const sg_status status : b.statuses)
    if (status != SG_STATUS_OK && result.status == SG_STATUS_OK)
      b.inflight.owner->fail(status, result.message ? result.message : name_of(status));
  b.inflight.home->complete_calls(b.inflight, result.status, result.message, result.start_ns, result.end_ns, 1);
}

}  // namespace sg
