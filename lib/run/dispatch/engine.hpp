// SPDX-License-Identifier: Apache-2.0
// Runs ready jobs: an event-driven engine over the backend's streams and the staging workers.
//
// No lock: a thread that reports an event (a job became ready, a command completed) pushes it to a lock-free list and
// requests a step, which it often runs itself. Only the thread that runs a step accesses the members below the line.
//
// On a device with memory of its own, commands are enqueued ahead of time; the device orders them by streams and
// events. On the cpu a command is enqueued on any free lane once its dependencies have completed: no worker waits for
// another. Small GEMMs that wait for a lane at the same time are batched.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "devices/device.hpp"
#include "model/device_model.hpp"
#include "run/dispatch/batch.hpp"
#include "run/dispatch/device_usage.hpp"
#include "run/dispatch/lane_set.hpp"
#include "run/dispatch/launcher.hpp"
#include "run/dispatch/node_stagers.hpp"
#include "run/dispatch/oom_replan.hpp"
#include "run/dispatch/ready_jobs.hpp"
#include "run/dispatch/run_device.hpp"
#include "run/dispatch/shared_arenas.hpp"
#include "run/dispatch/step_combiner.hpp"
#include "run/job/job.hpp"
#include "run/memory/arena_pool.hpp"
#include "run/program/inflight_command.hpp"
#include "run/program/program_run.hpp"

namespace sg {

class job_home;

class engine {
 public:
  struct settings {
    std::int32_t most_in_flight = 0;  // commands; 0: by the kinds of GEMM
    bool coalesce = true;
  };
  // For one device of a machine, the arenas' device. The model and the stagers, which call stage(), outlive it.
  // `keeper` owns the engine and all that its jobs touch. Throws sg::error.
  engine(const device_model &model, const settings &how, arena_pool &device_memory, arena_pool &staging_memory,
         const node_stagers &staging, job_home &keeper);
  ~engine();  // nothing is in flight
  engine(const engine &) = delete;
  engine &operator=(const engine &) = delete;

  device_index index() const noexcept { return device_memory_.index(); }  // of its device in the machine
  void push(job &ready) noexcept;                                         // takes over the engine's reference
  void sweep() noexcept;                                                  // a job was cancelled
  // Runs on this thread the commands of the job that are in a lane and that no thread has begun. The caller holds a
  // reference to the job.
  void help(const job &awaited) noexcept;
  void hurry() noexcept;                      // a thread waits: launch gathered jobs
  void wake() noexcept { steps_.request(); }  // memory that runs wait for may be free
  // Expected end of the command enqueued last, on CLOCK_MONOTONIC. Any thread.
  std::int64_t expected_end_ns() const noexcept { return expected_end_ns_.load(std::memory_order_relaxed); }
  // Adds a dedicated lane. Any thread; blocks until a step has done it. False: no lane is left.
  bool admit(lane_slot &dedicated) noexcept;
  void dismiss(lane_slot &dedicated) noexcept;  // nothing of it is in flight
  const device_usage &usage() const noexcept { return usage_; }
  // Some backend calls of a command have completed; the last one completes the command.
  void complete_calls(inflight_command &f, sg_status status, const char *message, std::int64_t start_ns,
                      std::int64_t end_ns, std::int32_t backend_calls) noexcept;

 private:
  static constexpr int priorities = 3;
  static constexpr std::size_t most_running = 64;  // runs of one priority at a time

  struct lane_change {  // requested by a thread that waits for it
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
  void on_device_progress() noexcept;
  void leave_to_submitter() const noexcept;
  void on_lane_notified() noexcept;  // on the lane's thread, after a command has completed

  // ---- Steps ----
  void step() noexcept;
  void note_saturation() noexcept;
  void note_queued() noexcept;
  void sort_in(job &ready) noexcept;
  static bool complete_unrun(job &ready) noexcept;
  void drop_cancelled() noexcept;
  void start_in_partitions() noexcept;
  // `held`: compute jobs must not start. Returns whether they must not at lower priorities either.
  bool start_ready(int priority, bool held) noexcept;
  bool start_front(ready_jobs &from, work_class what) noexcept;  // false: it must wait for a lane or for memory
  void start_single(job &ready, lane_slot &slot) noexcept;
  void gather(ready_jobs &from, job &first, lane_slot &slot) noexcept;
  void send_out(ready_jobs &from, batch &b, lane_slot &slot) noexcept;
  void start_unbatched(ready_jobs &from, batch &b, lane_slot *granted) noexcept;
  void launch_batch(batch &b, lane_bits behind, lane_slot &slot) noexcept;

  bool start_run(job &ready) noexcept;
  bool waits_for_memory(const program &wanted) noexcept;  // of other runs
  void acquire_memory(job &ready, bool replans);
  void give_up_memory(job &of) noexcept;
  void release_memory(job &of) noexcept;  // of a run that ends
  bool has_stuck_commands(const job &of) noexcept;
  // A command of `in` has failed.
  void retire_buffers_if_stuck(lane_slot *in) noexcept;
  void leave_lanes(job &failed) noexcept;
  // Whether its commands run in the lanes for runs over several devices.
  bool is_spread(const job &running) const noexcept {
    return running.program->is_spread() || running.program->device() != index();
  }
  run_device &device_of(const job &running, const command &c) noexcept {
    return is_spread(running) ? *devices_[number_of(c.where.device)] : own_;
  }
  lane_slot *find_lane(job &running, std::uint32_t index) noexcept;
  bool copies_in_run_dry(const job &running, const command &c) noexcept;
  void advance(job &running) noexcept;
  bool may_issue(const job &running, std::uint32_t command) const noexcept;
  bool dependencies_completed(const job &running, std::uint32_t command) const noexcept;
  bool issue_out_of_order(job &running, const program_run::lane_progress &lane) noexcept;  // false: there is none
  void enqueue_staging(job &running) noexcept;
  bool issue(job &running, std::uint32_t command) noexcept;  // a device command; false: no lane is free
  // Issues a device command batched with others of the run; false: the command must be issued unbatched.
  bool issue_batch(job &running, std::uint32_t command, lane_slot &slot) noexcept;
  void gather_commands(job &running, std::uint32_t command, batch &into);
  static void run_batch_completed(batch &b, const sg_backend_result &result) noexcept;
  static std::size_t batchable_with(const job &running, std::uint32_t command) noexcept;
  void begin_lane(job &running, program_run::lane_progress &lane, lane_slot &slot);
  void announce(job &running) noexcept;
  void record_end(job &running, std::uint32_t command, const lane_slot &slot);
  void wait_for_other_lanes(job &running, std::uint32_t command, const lane_slot &slot);
  void command_completed(inflight_command &f) noexcept;
  void add_time(job &running, std::uint32_t command) noexcept;
  void end_run(job &running) noexcept;

  job_home &keeper_;
  const device &device_;
  const device_model &model_;
  const sg_backend_ops &ops_;
  const bool coalesce_;
  arena_pool &device_memory_;
  arena_pool &staging_memory_;

  std::atomic<job *> inbox_{nullptr};
  std::atomic<inflight_command *> completed_{nullptr};
  std::atomic<lane_change *> lane_changes_{nullptr};
  std::atomic<bool> sweep_wanted_{false};
  // Small GEMMs are queued, and a completion will request a step: submitters may leave jobs in the inbox. On cores:
  // while each core has its full queue depth.
  std::atomic<bool> saturated_{false};
  std::atomic<bool> hurry_wanted_{false};
  std::atomic<bool> lane_full_{false};  // a job could not follow another on the device: the lane was full
  std::atomic<std::int64_t> expected_end_ns_{0};
  device_usage usage_;

  bool hurried_ = false;          // in this step
  bool memory_released_ = false;  // likewise: a run has released memory
  bool memory_refused_ = false;   // likewise: refused since then to a run, which waits for other runs to complete
  lane_set lanes_;
  run_device own_;
  launcher &launcher_ = own_.launch();
  std::vector<std::unique_ptr<run_device>> devices_;  // of runs over several devices, by index; made on demand
  oom_replan oom_replan_;
  batch_pool batches_;
  shared_arenas shared_arenas_{priorities * most_running};
  std::array<std::array<ready_jobs, work_classes>, priorities> ready_;
  ready_jobs ready_in_partitions_;  // jobs for partitions' lanes
  std::array<std::vector<job *>, priorities> running_;
  const node_stagers &stagers_;
  step_combiner steps_;
};

}  // namespace sg
