// SPDX-License-Identifier: Apache-2.0
// Runs jobs that are ready: an event-driven machine over the backend's streams and the staging workers.
//
// No lock: a thread that reports an event (a job that became ready, a command that completed) pushes it to a lock-free
// list and requests a step, which it often runs itself. Only the thread that runs a step accesses the members below the
// line.
//
// On a device with memory of its own, commands go out ahead of time, ordered on the device by its streams and events.
// On the cpu a command goes out when what it waits for has ended, to whichever lane is free: no worker ever waits for
// another. Small products that wait for a lane at the same time go out as one command.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "backend/device.hpp"
#include "plan/model/device_model.hpp"
#include "run/dispatch/batch.hpp"
#include "run/dispatch/lane_set.hpp"
#include "run/dispatch/launcher.hpp"
#include "run/dispatch/oom_replan.hpp"
#include "run/dispatch/ready_jobs.hpp"
#include "run/dispatch/stager.hpp"
#include "run/dispatch/step_combiner.hpp"
#include "run/job/job.hpp"
#include "run/memory/arena_pool.hpp"
#include "run/program/inflight_command.hpp"
#include "run/program/program_run.hpp"

namespace sg {

class engine {
 public:
  struct settings {
    std::int32_t most_in_flight = 0;  // commands; 0: as the kinds of product suggest
    bool coalesce = true;
  };
  // Of one device of a machine, that of the arenas. `keeper` owns the engine and all that its jobs touch. Throws
  // sg::error.
  engine(const device_model &model, const settings &how, arena_pool &device_memory, arena_pool &staging_memory,
         object &keeper);
  ~engine();  // nothing is in flight
  engine(const engine &) = delete;
  engine &operator=(const engine &) = delete;

  device_index index() const noexcept { return device_memory_.index(); }  // of its device in the machine
  void push(job &ready) noexcept;                                         // takes over the engine's reference
  void sweep() noexcept;                                                  // some job was cancelled
  // Runs on this thread what of the job is in a lane and no thread has begun. Any thread that holds a reference to it.
  void help(const job &awaited) noexcept;
  void hurry() noexcept;  // somebody waits: what has gathered is to go out
  // When what was given to the device last should have ended, on CLOCK_MONOTONIC. Any thread.
  std::int64_t expected_end_ns() const noexcept { return expected_end_ns_.load(std::memory_order_relaxed); }
  // A lane that is used by name. Any thread; waits for the engine's. False: there is no room.
  bool admit(lane_slot &dedicated) noexcept;
  void dismiss(lane_slot &dedicated) noexcept;  // nothing of it is in flight
  // Some backend calls of a command have ended; the last one ends the command.
  void complete_calls(inflight_command &f, sg_status status, const char *message, std::int64_t start_ns,
                      std::int64_t end_ns, std::int32_t backend_calls) noexcept;

 private:
  static constexpr int priorities = 3;
  static constexpr std::size_t most_running = 64;  // runs of one priority at a time

  struct lane_change {  // asked for by a thread that waits for it
    lane_change *next = nullptr;
    lane_slot *dedicated = nullptr;
    bool arrives = true, granted = false;
    std::atomic<std::uint32_t> over{0};  // a futex
  };
  void change_lanes(lane_change &wanted) noexcept;

  static int32_t is_cancelled(const sg_backend_done *done);
  static int32_t is_of(const sg_backend_done *done, void *awaited);
  static void batch_completed(void *user, const sg_backend_result *result);
  void release_batch(batch &b) noexcept;
  static void complete_members(batch &b, job_home &home) noexcept;
  void inflight_completed(inflight_command &f) noexcept;
  void device_news() noexcept;
  void let_submitter_look() const noexcept;
  void lane_is_notified() noexcept;  // by its thread, of a command that has ended there

  // ---- in its turn ----
  void step() noexcept;
  void note_saturation() noexcept;
  void sort_in(job &ready) noexcept;
  static bool complete_unrun(job &ready) noexcept;
  void drop_cancelled() noexcept;
  void start_in_partitions() noexcept;
  // `held`: what computes is not to start. Returns whether that holds for lower priorities.
  bool start_ready(int priority, bool held) noexcept;
  bool start_front(ready_jobs &from, work_class what) noexcept;  // false: it has to wait for a lane or for memory
  void start_single(job &ready, lane_slot &slot) noexcept;
  void gather(ready_jobs &from, job &first, lane_slot &slot) noexcept;
  void send_out(ready_jobs &from, batch &b, lane_slot &slot) noexcept;
  void start_unbatched(ready_jobs &from, batch &b, lane_slot *granted) noexcept;
  void launch_batch(batch &b, lane_bits behind, lane_slot &slot) noexcept;

  bool start_run(job &ready) noexcept;
  void advance(job &running) noexcept;
  bool may_go(const job &running, std::uint32_t command) const noexcept;
  bool waits_are_over(const job &running, std::uint32_t command) const noexcept;
  bool issue_out_of_order(job &running, const program_run::lane_progress &lane) noexcept;  // false: there is none
  void give_to_workers(job &running) noexcept;
  bool issue(job &running, std::uint32_t command) noexcept;  // a device's; false: no lane is free
  // The same with whatever else may be one call with it; false: it has to go out by itself.
  bool issue_batch(job &running, std::uint32_t command, lane_slot &slot) noexcept;
  void gather_commands(job &running, std::uint32_t command, batch &into);
  static void run_batch_completed(batch &b, const sg_backend_result &result) noexcept;
  static std::size_t batchable_with(const job &running, std::uint32_t command) noexcept;
  void record_end(job &running, std::uint32_t command, const lane_slot &slot);
  void wait_for_others(job &running, std::uint32_t command, const lane_slot &slot);
  void command_completed(inflight_command &f) noexcept;
  static void add_time(job &running, std::uint32_t command) noexcept;
  void end_run(job &running) noexcept;
  void stage(inflight_command &f) noexcept;

  const device &device_;
  const sg_backend_ops &ops_;
  const bool coalesce_;
  arena_pool &device_memory_;
  arena_pool &staging_memory_;

  std::atomic<job *> inbox_{nullptr};
  std::atomic<inflight_command *> completed_{nullptr};
  std::atomic<lane_change *> lane_changes_{nullptr};
  std::atomic<bool> sweep_wanted_{false};
  // Small products wait, and what is in flight will step_combiner when it ends: submitters may leave theirs in the
  // inbox. On cores: while each has what it may have ahead.
  std::atomic<bool> saturated_{false};
  std::atomic<bool> hurry_wanted_{false};
  std::atomic<bool> lane_full_{false};  // a job could not follow another on the device, for want of room there
  std::atomic<std::int64_t> expected_end_ns_{0};

  bool hurried_ = false;           // in this step
  bool memory_came_back_ = false;  // the same: of a run that ended
  bool memory_refused_ = false;    // the same: since then, to a run that waits for others' to end
  lane_set lanes_;
  launcher launcher_;
  oom_replan oom_replan_;
  batch_pool batches_;
  std::array<std::array<ready_jobs, work_classes>, priorities> ready_;
  ready_jobs ready_in_partitions_;  // each for a lane of its own, on compute units that are set aside
  std::array<std::vector<job *>, priorities> running_;
  std::vector<sg_backend_event *> events_;  // unused ones
  stager stager_;
  step_combiner steps_;
};

}  // namespace sg
