// SPDX-License-Identifier: Apache-2.0
// Runs of schedules with several commands.
#include <algorithm>
#include <new>
#include <utility>

#include "base/error.hpp"
#include "run/dispatch/engine.hpp"
#include "run/dispatch/traced_commands.hpp"
#include "run/job/job_home.hpp"
#include "trace/recorder.hpp"

namespace sg {

namespace {

constexpr std::size_t most_overtaken = 64;  // copies: about the number of chunks in slots

}  // namespace

void engine::advance(job &running) noexcept {
  program_run &run = *running.run;
  if (running.cancel_requested() && !running.failed() && !run.complete())
    running.fail_early("while it ran; C may be partly written");
  if (!running.failed())
    enqueue_staging(running);
  else if (is_spread(running))
    leave_lanes(running);
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
  if (!copies_in_run_dry(running, program.schedule->commands[list[lane.next]])) return false;
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
  const auto node_of = [&](std::uint32_t command) {
    return stagers_.node_of(is_spread(running) ? running.program->schedule->commands[command].where.device : index());
  };
  for (std::size_t node = 0; node < stagers_.size(); ++node) {
    inflight_command *first = nullptr;
    for (const std::uint32_t command : run.stageable) {
      if (node_of(command) != node) continue;
      inflight_command &f = run.inflight[command];
      f.begin(this, running, command, nullptr, 1);
      f.next = std::exchange(first, &f);
      run.states[command] = program_run::command_state::enqueued;
      ++run.in_flight;
    }
    try {
      if (first) stagers_.node(node).add(first);
    } catch (...) {
      const sg_status status = status_of_current_exception();
      for (inflight_command *next = nullptr; first; first = next) {
        next = first->next;
        complete_calls(*first, status, last_error(), 0, 0, 1);
      }
    }
  }
  run.stageable.clear();
}

lane_slot *engine::find_lane(job &running, std::uint32_t index) noexcept {
  const lane where = running.program->lanes[running.run->lane_of[index]].where;
  if (is_spread(running)) return device_of(running, running.program->schedule->commands[index]).lanes().find(where);
  if (running.partition_lane && where.kind == lane_kind::compute) return lane_set::with_room(*running.partition_lane);
  return lanes_.find(where, running.priority, running.program->wants_core, running.run->first_lane);
}

bool engine::copies_in_run_dry(const job &running, const command &c) noexcept {
  return is_spread(running) ? device_of(running, c).lanes().copies_in_run_dry() : lanes_.copies_in_run_dry();
}

bool engine::issue(job &running, std::uint32_t index) noexcept {
  program_run &run = *running.run;
  const command &c = running.program->schedule->commands[index];
  inflight_command &f = run.inflight[index];
  lane_slot *const slot = find_lane(running, index);
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
    lane_set::entered_of_run(*slot);
    wait_for_other_lanes(running, index, *slot);
    unmade = 1;
    const std::int32_t units = c.is<ops::gemm>() ? lanes_.units_for(running.priority, 1, running.units) : 0;
    if (device_of(running, c).launch().launch(f, c, units) && running.program->needs_event[index])
      record_end(running, index, *slot);
    complete_calls(f, SG_STATUS_OK, nullptr, 0, 0, unmade);
  } catch (...) {
    const sg_status status = status_of_current_exception();
    complete_calls(f, status, last_error(), 0, 0, unmade);
  }
  return true;
}

// Before the first command of a schedule's lane.
void engine::begin_lane(job &running, program_run::lane_progress &lane, lane_slot &slot) {
  if (!is_spread(running)) running.run->used_lanes |= bit_of_lane(slot.index);
  if (lane.started) return;
  if (!is_spread(running)) lanes_.follow(slot, running.behind(), running.behind_marks());
  device_.begin_at(slot.stream, running.ready_ns());
  lane.started = true;
}

// Records an event for commands of other lanes that wait for this one on the device.
void engine::record_end(job &running, std::uint32_t index, const lane_slot &slot) {
  if (!lanes_.device_ordered()) return;
  running.run->events[index] = device_of(running, running.program->schedule->commands[index]).record(slot.stream);
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
    // In virtual time the wait says when the command begins.
    if (run.states[before] == program_run::command_state::completed && !ops_.stream_begin_at) continue;
    device_of(running, c).on().check(ops_.stream_wait(slot.stream, run.events[before]), "waiting for an event");
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

void engine::end_run(job &running) noexcept {
  auto &list = running_[static_cast<std::size_t>(running.priority + 1)];
  list.erase(std::find(list.begin(), list.end(), &running));
  const program_run &run = *running.run;
  for (std::size_t i = 0; i < run.events.size(); ++i)
    if (run.events[i]) device_of(running, running.program->schedule->commands[i]).release(run.events[i]);
  release_memory(running);
  memory_released_ = true;
  running.work_completed();
}

}  // namespace sg
