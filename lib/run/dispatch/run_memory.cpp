// SPDX-License-Identifier: Apache-2.0
// Starting runs, and their memory: an arena on each device of the run.
#include <algorithm>
#include <new>
#include <utility>

#include "base/error.hpp"
#include "run/dispatch/engine.hpp"
#include "run/dispatch/traced_commands.hpp"
#include "run/job/job_home.hpp"
#include "run/job/process.hpp"

namespace sg {

// Acquires the run's memory; false: it must wait for another run's.
bool engine::start_run(job &ready) noexcept {
  auto &running = running_[static_cast<std::size_t>(ready.priority + 1)];
  if (running.size() == most_running) return false;
  const bool others = waits_for_memory(*ready.program);
  try {
    acquire_memory(ready, !others);
  } catch (...) {
    const sg_status status = status_of_current_exception();
    give_up_memory(ready);
    if (status == SG_STATUS_OUT_OF_MEMORY && others) {
      memory_refused_ = true;
      return false;
    }
    ready.fail(status, last_error());  // advance() completes it
  }
  running.push_back(&ready);
  for (const device_index each : ready.program->devices) ready.owner().device_memory(each).run_begins();
  if (ready.follows_on_device || ready.program->in_one_lane) ready.run->first_lane = lanes_.lane_behind(ready.behind());
  ready.begins(ready.program->schedule->commands.size());
  trace_schedule(ready);
  const std::int64_t predicted_ns = ready.program->predicted_ns(), end_ns = monotonic_ns() + predicted_ns;
  expected_end_ns_.store(end_ns, std::memory_order_relaxed);
  ready.expect_end(end_ns, predicted_ns);
  return true;
}

// Whether other runs, of this engine or of another device's engine, may release memory. When a run of another engine
// ends, it then requests a step of this one.
bool engine::waits_for_memory(const program &wanted) noexcept {
  bool others = std::any_of(running_.begin(), running_.end(), [](const auto &list) { return !list.empty(); });
  if (keeper_.devices().size() > 1)
    for (const device_index each : wanted.devices) others = keeper_.device_memory(each).await_runs() || others;
  return others;
}

void engine::acquire_memory(job &ready, bool replans) {
  char *const shared =
      is_spread(ready) ? nullptr : shared_arenas_.take(ready.program->schedule->device_bytes, ready.behind());
  oom_replan_.acquire_memory(ready, shared, replans);
  if (!is_spread(ready)) return;
  job_home &home = ready.owner();
  devices_.resize(std::max(devices_.size(), home.devices().size()));
  for (const device_index each : ready.program->devices) {
    std::unique_ptr<run_device> &on = devices_[number_of(each)];
    if (!on) on = std::make_unique<run_device>(home.on(each));
    on->open_lanes(each, std::max<std::uint32_t>(1, ready.program->schedule->lanes[int(lane_kind::compute)]));
  }
}

void engine::give_up_memory(job &of) noexcept {
  if (shared_arenas_.release(of.operands.device_arena)) of.operands.device_arena = nullptr;  // another run uses it
  oom_replan::release(of);
}

// Whether a device may still run commands of the job, which has failed: they wait for another device, which is lost.
bool engine::has_stuck_commands(const job &of) noexcept {
  if (!of.failed() || !is_spread(of) || !ops_.stream_status) return false;
  return std::any_of(of.run->slots.begin(), of.run->slots.end(), [this](const lane_slot *slot) {
    return slot && ops_.stream_status(slot->stream) != SG_STATUS_OK;
  });
}

// Commands that the backend has given up may still use any memory of the devices. They were enqueued before the first
// of them was reported, so that later buffers are none of their operands.
void engine::retire_buffers_if_stuck(lane_slot *in) noexcept {
  if (!in || !ops_.stream_status || in->has_retired.load(std::memory_order_acquire)) return;
  if (ops_.stream_status(in->stream) == SG_STATUS_OK) return;
  retire_buffers_of_homes(ops_);
  in->has_retired.store(true, std::memory_order_release);
}

// Of a job that a lost device has failed: its commands on the others may wait for that one, and later jobs must not.
void engine::leave_lanes(job &failed) noexcept {
  program_run &run = *failed.run;
  const auto is_lost = [&](device_index each) { return failed.owner().on(each).status() != SG_STATUS_OK; };
  if (run.left_lanes || std::none_of(failed.program->devices.begin(), failed.program->devices.end(), is_lost)) return;
  run.left_lanes = true;
  for (std::size_t i = 0; i < run.slots.size(); ++i)
    if (run.slots[i]) device_of(failed, failed.program->schedule->commands[i]).lanes().replace(*run.slots[i]);
}

void engine::release_memory(job &of) noexcept {
  job_home &home = of.owner();
  if (has_stuck_commands(of)) oom_replan::release(of, true);
  give_up_memory(of);
  bool awaited = false;
  for (const device_index each : of.program->devices) awaited = home.device_memory(each).run_ends() || awaited;
  if (awaited) home.wake_engines();
}

}  // namespace sg
