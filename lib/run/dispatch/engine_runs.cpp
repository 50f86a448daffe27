// SPDX-License-Identifier: Apache-2.0
// Runs of schedules with several commands.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/bf16.hpp"
#include "base/copy_past_caches.hpp"
#include "base/error.hpp"
#include "run/dispatch/engine.hpp"
#include "run/dispatch/traced_commands.hpp"
#include "run/job/job_home.hpp"
#include "trace/profiler_ranges.hpp"
#include "trace/recorder.hpp"

namespace sg {

namespace {

constexpr std::size_t most_overtaken = 64;  // copies: about the number of chunks in slots
// bytes of a row; for shorter ones the partial cache lines cost too much
constexpr std::size_t least_past_caches = 1024;

void run_downcast(const downcast &n) noexcept {
  for (std::int64_t column = 0; column < n.columns; ++column)
    round_to_bf16(n.to + column * n.count, n.from + column * n.pitch, static_cast<std::size_t>(n.count));
}

}  // namespace

// Acquires the run's memory; false: it must wait for another run's.
bool engine::start_run(job &ready) noexcept {
  auto &running = running_[static_cast<std::size_t>(ready.priority + 1)];
  if (running.size() == most_running) return false;
  const bool others = std::any_of(running_.begin(), running_.end(), [](const auto &list) { return !list.empty(); });
  try {
    ready.operands.device_arena = shared_arenas_.take(ready.program->schedule->device_bytes, ready.behind());
    if (!ready.operands.device_arena) oom_replan_.acquire_memory(ready, device_memory_, !others);
    ready.operands.staging_arena = staging_memory_.acquire(ready.program->schedule->staging_bytes);
  } catch (...) {
    const sg_status status = status_of_current_exception();
    release_device_memory(ready);
    if (status == SG_STATUS_OUT_OF_MEMORY && others) {
      memory_refused_ = true;
      return false;
    }
    ready.fail(status, last_error());  // advance() completes it
  }
  running.push_back(&ready);
  if (ready.follows_on_device || ready.program->in_one_lane) ready.run->first_lane = lanes_.lane_behind(ready.behind());
  ready.begins(ready.program->schedule->commands.size());
  trace_schedule(ready);
  const std::int64_t predicted_ns = ready.program->predicted_ns(), end_ns = monotonic_ns() + predicted_ns;
  expected_end_ns_.store(end_ns, std::memory_order_relaxed);
  ready.expect_end(end_ns, predicted_ns);
  return true;
}

void engine::advance(job &running) noexcept {
  program_run &run = *running.run;
  if (running.cancel_requested() && !running.failed() && !run.complete())
    running.fail_early("while it ran; C may be partly written");
  if (!running.failed()) enqueue_staging(running);
  // In the order of the schedule across lanes: the first command of a lane is not delayed by issuing the last one of
  // another.
  for (auto &lane : run.lanes) lane.held_up = false;
  while (!running.failed()) {
    program_run::lane_progress *first = nullptr;
    std::uint32_t command = UINT32_MAX;
    for (std::size_t l = 0; l < run.lanes.size(); ++l) {
      const auto &list = running.program->lanes[l].commands;
      program_run::lane_progress &lane = run.lanes[l];
      if (lane.held_up || lane.next == list.size() || list[lane.next] >= command) continue;
      first = &lane;
      command = list[lane.next];
    }
    if (!first) break;
    if ((!may_issue(running, command) || !issue(running, command)) && !issue_out_of_order(running, *first))
      first->held_up = true;
  }
  if (running.follows_on_device && !run.announced && run.all_issued()) announce(running);
  if (run.idle() && (run.complete() || running.failed())) end_run(running);
}

// All commands are enqueued: successors may be behind them, in the same memory.
void engine::announce(job &running) noexcept {
  program_run &run = *running.run;
  run.announced = true;
  shared_arenas_.offer(running.operands.device_arena, running.program->schedule->device_bytes, run.used_lanes);
  running.issued(run.used_lanes, {});
}

// Whether all dependencies have completed, also in virtual time: a device's command may be reported before its virtual
// end.
bool engine::dependencies_completed(const job &running, std::uint32_t index) const noexcept {
  const schedule &s = *running.program->schedule;
  const auto first = s.waits.begin() + s.commands[index].first_wait;
  return std::all_of(first, first + s.commands[index].waits, [&](std::uint32_t before) {
    return running.run->states[before] == program_run::command_state::completed &&
           (!ops_.stream_begin_at || !on_device(s.commands[before].where));
  });
}

// The next chunk is not packed yet: a later, packed one keeps the link busy. Only a few, because the next one would
// have to wait for them.
bool engine::issue_out_of_order(job &running, const program_run::lane_progress &lane) noexcept {
  const program_run &run = *running.run;
  const sg::program &program = *running.program;
  const auto &list = program.lanes[static_cast<std::size_t>(&lane - run.lanes.data())].commands;
  if (!lanes_.device_ordered() || !program.schedule->commands[list[lane.next]].is<ops::copy_in>()) return false;
  if (!lanes_.copies_in_run_dry()) return false;
  const std::size_t end = std::min<std::size_t>(list.size(), lane.next + most_overtaken);
  for (std::size_t at = lane.next + 1; at < end; ++at) {
    const std::uint32_t later = list[at];
    if (program.is_out_of_order[later] && run.states[later] == program_run::command_state::waiting &&
        dependencies_completed(running, later))
      return issue(running, later);
  }
  return false;
}

// Whether all dependencies have completed, or are ahead of it on the device.
bool engine::may_issue(const job &running, std::uint32_t index) const noexcept {
  const program_run &run = *running.run;
  const schedule &s = *running.program->schedule;
  const command &c = s.commands[index];
  const bool ordered_by_device = lanes_.device_ordered();
  if (!ordered_by_device && run.lanes[run.lane_of[index]].busy) return false;
  for (std::uint32_t w = 0; w < c.waits; ++w) {
    const std::uint32_t before = s.waits[c.first_wait + w];
    if (run.states[before] == program_run::command_state::completed) continue;
    if (run.states[before] == program_run::command_state::waiting) return false;
    if (!ordered_by_device || !on_device(s.commands[before].where)) return false;
  }
  return true;
}

// Enqueues the commands of host workers that can begin now.
void engine::enqueue_staging(job &running) noexcept {
  program_run &run = *running.run;
  if (run.stageable.empty()) return;
  inflight_command *first = nullptr;
  for (const std::uint32_t command : run.stageable) {
    inflight_command &f = run.inflight[command];
    f.begin(this, running, command, nullptr, 1);
    f.next = std::exchange(first, &f);
    run.states[command] = program_run::command_state::enqueued;
    ++run.in_flight;
  }
  run.stageable.clear();
  try {
    stager_.add(first);
  } catch (...) {
    const sg_status status = status_of_current_exception();
    for (inflight_command *next = nullptr; first; first = next) {
      next = first->next;
      complete_calls(*first, status, last_error(), 0, 0, 1);
    }
  }
}

bool engine::issue(job &running, std::uint32_t index) noexcept {
  program_run &run = *running.run;
  const command &c = running.program->schedule->commands[index];
  inflight_command &f = run.inflight[index];
  const lane where = running.program->lanes[run.lane_of[index]].where;
  lane_slot *slot = running.partition_lane && where.kind == lane_kind::compute
                        ? lane_set::with_room(*running.partition_lane)
                        : lanes_.find(where, running.priority, running.program->wants_core, run.first_lane);
  if (!slot) return false;
  const bool joins = coalesce_ || running.program->one_call;
  if (joins && !running.program->batchable.empty() && running.program->batchable[index] > 0 && !run.unbatched &&
      issue_batch(running, index, *slot))
    return true;
  program_run::lane_progress &progress = run.lanes[run.lane_of[index]];
  run.mark_issued(index);
  f.begin(this, running, index, slot, 2);
  run.slots[index] = slot;
  ++run.in_flight;
  std::int32_t unmade = 2;  // unmade backend calls, and this function's own count
  try {
    begin_lane(running, progress, *slot);
    lanes_.entered_of_run(*slot);
    wait_for_other_lanes(running, index, *slot);
    unmade = 1;
    const std::int32_t units = c.is<ops::gemm>() ? lanes_.units_for(running.priority, 1, running.units) : 0;
    if (launcher_.launch(f, c, units) && running.program->needs_event[index]) record_end(running, index, *slot);
    complete_calls(f, SG_STATUS_OK, nullptr, 0, 0, unmade);
  } catch (...) {
    const sg_status status = status_of_current_exception();
    complete_calls(f, status, last_error(), 0, 0, unmade);
  }
  return true;
}

// Before the first command of a schedule's lane.
void engine::begin_lane(job &running, program_run::lane_progress &lane, lane_slot &slot) {
  running.run->used_lanes |= bit_of_lane(slot.index);
  if (lane.started) return;
  lanes_.follow(slot, running.behind(), running.behind_marks());
  device_.begin_at(slot.stream, running.ready_ns());
  lane.started = true;
}

// Records an event for commands of other lanes that wait for this one on the device.
void engine::record_end(job &running, std::uint32_t index, const lane_slot &slot) {
  if (!lanes_.device_ordered()) return;
  if (events_.empty()) {
    events_.reserve(1);  // first, so that a made event can always be stored
    events_.push_back(device_.event_create());
  }
  running.run->events[index] = events_.back();
  events_.pop_back();
  device_.check(ops_.event_record(running.run->events[index], slot.stream), "recording an event");
}

// On the device, after its dependencies in other streams.
void engine::wait_for_other_lanes(job &running, std::uint32_t index, const lane_slot &slot) {
  if (!lanes_.device_ordered()) return;
  const schedule &s = *running.program->schedule;
  const command &c = s.commands[index];
  program_run &run = *running.run;
  for (std::uint32_t w = 0; w < c.waits; ++w) {
    const std::uint32_t before = s.waits[c.first_wait + w];
    if (run.slots[before] == &slot || !run.events[before]) continue;
    device_.check(ops_.stream_wait(slot.stream, run.events[before]), "waiting for an event");
  }
}

void engine::command_completed(inflight_command &f) noexcept {
  job &running = *f.owner;
  program_run &run = *running.run;
  const auto completed = [&](std::uint32_t command) {
    run.states[command] = program_run::command_state::completed;
    if (run.lane_of[command] != UINT32_MAX) run.lanes[run.lane_of[command]].busy = false;
    --run.in_flight;
    ++run.completed_count;
    for (const std::uint32_t after : running.program->after.of(command))
      if (!on_device(running.program->schedule->commands[after].where) && --run.blockers[after] == 0)
        run.stageable.push_back(after);
  };
  if (f.batch)
    std::for_each(f.batch->commands.begin(), f.batch->commands.end(), completed);
  else
    completed(f.index);
  if (f.end_ns != 0 || !running.failed()) running.ran(f);
  if (f.batch) {
    running.add_time(f, running.ready_ns());
    usage_.count_command(f, running.ready_ns());
    if (running.trace_number != 0 && trace::recording_is_on()) trace_of_run(f, running.ready_ns());
    return batches_.release(*f.batch);
  }
  add_time(running, f.index);
  for (const std::uint32_t after : running.program->after.of(f.index)) add_time(running, after);
}

// Called once the command and its dependencies have been reported, in any order: a backend whose stream waits for
// another may not know the start time.
void engine::add_time(job &running, std::uint32_t index) noexcept {
  const program_run &run = *running.run;
  const schedule &s = *running.program->schedule;
  if (run.states[index] != program_run::command_state::completed) return;
  std::int64_t dependencies_end_ns = running.ready_ns();
  for (std::uint32_t w = 0; w < s.commands[index].waits; ++w) {
    const std::uint32_t before = s.waits[s.commands[index].first_wait + w];
    if (run.states[before] != program_run::command_state::completed) return;
    dependencies_end_ns = std::max(dependencies_end_ns, run.inflight[before].end_ns);
  }
  running.add_time(run.inflight[index], dependencies_end_ns);
  usage_.count_command(run.inflight[index], dependencies_end_ns);
  if (running.trace_number != 0 && trace::recording_is_on()) trace_of_run(run.inflight[index], dependencies_end_ns);
}

void engine::release_device_memory(job &of) noexcept {
  char *const arena = std::exchange(of.operands.device_arena, nullptr);
  if (!shared_arenas_.release(arena)) device_memory_.release(arena);
}

void engine::end_run(job &running) noexcept {
  auto &list = running_[static_cast<std::size_t>(running.priority + 1)];
  list.erase(std::find(list.begin(), list.end(), &running));
  for (sg_backend_event *event : running.run->events) {
    if (!event) continue;
    try {
      events_.push_back(event);
    } catch (const std::bad_alloc &) {
      ops_.event_destroy(event);
    }
  }
  release_device_memory(running);
  staging_memory_.release(running.operands.staging_arena);
  memory_released_ = true;
  running.work_completed();
}

// On a staging worker's thread.
void engine::stage(inflight_command &f) noexcept {
  sg_status status = SG_STATUS_OK;
  const char *message = nullptr;
  if (f.owner->failed()) return complete_calls(f, SG_STATUS_OK, nullptr, 0, 0, 1);
  const bool in_profiler = trace::profiler_is_on();
  if (in_profiler) trace::push_range("stage");
  const std::int64_t traced_ns = f.owner->trace_number != 0 && trace::recording_is_on() ? monotonic_ns() : 0;
  try {
    const schedule &s = *f.owner->program->schedule;
    const command &c = s.commands[f.index];
    std::vector<sg_backend_copy> copies;
    if (const auto rounding = lower_downcast(s.buffers, c, f.owner->operands))
      run_downcast(*rounding);
    else
      lower_copy(s.buffers, c, f.owner->operands, copies);
    // Staging memory should stay in the caches, where the device reads it; results should not.
    const auto copy_run = [&](void *to, const void *from, std::size_t bytes) {
      if (c.is<ops::unpack>() && bytes >= least_past_caches)
        copy_past_caches(to, from, bytes);
      else
        std::memcpy(to, from, bytes);
    };
    for (const sg_backend_copy &copy : copies)
      for (std::int64_t run = 0; run < copy.height; ++run)
        copy_run(static_cast<char *>(copy.dst) + run * copy.dst_pitch,
                 static_cast<const char *>(copy.src) + run * copy.src_pitch, static_cast<std::size_t>(copy.width));
  } catch (const std::bad_alloc &) {
    status = SG_STATUS_OUT_OF_MEMORY;
    message = "out of host memory while staging";
  }
  if (in_profiler) trace::pop_range();
  if (traced_ns != 0) trace_staging(f, traced_ns);
  complete_calls(f, status, message, 0, 0, 1);
}

}  // namespace sg
