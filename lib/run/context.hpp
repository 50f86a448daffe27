// SPDX-License-Identifier: Apache-2.0
// A context: one open device or several of one machine, and the jobs submitted to them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/device_array.hpp"
#include "model/machine_model.hpp"
#include "run/device_room.hpp"
#include "run/memory/memory_kinds.hpp"
#include "run/memory/pinned_memory.hpp"
#include "run/open_machine.hpp"
#include "run/order/epochs.hpp"
#include "run/order/job_sink.hpp"
#include "run/program/program_cache.hpp"
#include "trace/recorder.hpp"

namespace sg {

struct context_settings {
  std::string device;  // these five as in machine_settings
  std::int32_t compute_lanes = 0;
  std::int32_t staging_threads = 0;
  std::int64_t memory_limit = 0;
  bool tune = false;
  bool check_hazards = false;
  engine::settings dispatch;
  std::int64_t job_limit = 0;     // jobs in flight; 0: none
  bool refuse_when_full = false;  // otherwise a submission waits
};

class context final : public job_sink {
 public:
  static ref<context> create(const context_settings &settings);  // Throws sg::error.
  ~context() override;

  const machine_model &machine() const noexcept { return machine_; }  // with the settings applied
  const device_model &model(device_index of = first_device) const noexcept { return machine_.device(of); }
  // Of a device of the machine.
  engine &executor(device_index of = first_device) noexcept { return rooms_[of].executor; }
  event_lanes &lanes_of_events(device_index of = first_device) noexcept { return rooms_[of].lanes_of_events; }
  partitions &unit_partitions(device_index of = first_device) noexcept { return rooms_[of].unit_partitions; }
  arena_pool &device_memory(device_index of = first_device) noexcept override { return rooms_[of].device_memory; }
  arena_pool &staging_memory(device_index of) noexcept override { return rooms_[of].staging_memory; }
  pinned_memory &pinned() noexcept { return pinned_; }
  memory_kinds &memory() noexcept { return memory_; }
  const memory_kinds &memory() const noexcept { return memory_; }
  // Failed jobs should have written there; no reader depends on it now: the memory belongs to a new owner.
  void forget_failures_in(const void *memory, std::uint64_t bytes) noexcept;

  bool checks_hazards() const noexcept { return check_hazards_; }
  std::shared_ptr<const program> plan_for(const form &what, const plan_request &request);
  // Of these devices (bit i for device i) the one that works and has the earliest expected end.
  device_index least_busy(std::uint64_t among = UINT64_MAX) const;  // Throws sg::error if none works.
  // Devices that are not lost, bit i for device i.
  std::uint64_t working_devices() const noexcept;

  void submit(ref<job> work, const submission_order &order, const access *accesses, std::size_t access_count) override;
  void submit_children(const ref<job> &parent, const submission_order &order, const submission_list &recorded,
                       std::span<const child_run> runs) override;
  // Whether GEMMs with a waiting submitter are split into parts that several cores compute at a time.
  bool plans_for_latency() const noexcept {
    return model().lanes_are_cores && on().ops().run_here && on().has_batches();
  }
  // Whether submit_here() may compute a job that its submitter waits for next.
  bool computes_here(const job &work, const submission_order &order) const noexcept {
    return on().ops().run_here && !has_job_limit_ && !order.on && order.after_count == 0 && !work.queue &&
           work.deadline_at_ns == 0 && !work.partition_lane && work.program && work.program->short_here &&
           work.operands.pointers.empty();
  }
  // Computes the job on this thread and idle cores, and completes it, if only such jobs are in flight and it follows
  // none of them. Otherwise submits it. If it fails, `kept` gets a reference.
  void submit_here(ref<job> work, const submission_order &order, const access *accesses, std::size_t access_count,
                   ref<job> *kept);
  // Waits until all earlier submissions have completed; false: the time passed.
  bool synchronize(const deadline &until) noexcept;

  // --- Interface for jobs and objects ---
  void push(job &ready) noexcept override { executor(ready.device).push(ready); }
  void sweep() noexcept override {
    for (device_room &each : rooms_) each.executor.sweep();
  }
  void wake_engines() noexcept override {
    for (device_room &each : rooms_) each.executor.wake();
  }
  void help(const job &awaited) noexcept override { executor(awaited.device).help(awaited); }
  std::shared_ptr<const program> replan(const program &planned, const plan_request &request) override {
    return plans_.look_up(*planned.what, request, machine_, check_hazards_);
  }
  void free_when_unused(device_buffer &released) noexcept override;
  void free_unused_buffers() noexcept override;
  bool has_released_buffers() const noexcept override { return released_count_.load(std::memory_order_acquire) > 0; }
  context_counters counters() noexcept override;
  void record_name() const noexcept override;

 private:
  context(opened_machine &&opened, const context_settings &settings);
  void hurry() noexcept override {
    for (device_room &each : rooms_) each.executor.hurry();
  }
  // Gives the job a number in the trace, and the call that submits it.
  void trace_submission(trace::timed_event &call, job &work, const submission_order &order) noexcept;
  void trace_names(const job &of) noexcept;       // records its label and its trace_id
  void trace_child(job &child) noexcept;          // of a graph's run
  std::int64_t expected_end_ns() const noexcept;  // of the latest command of any device, on CLOCK_MONOTONIC
  bool count_completions(std::uint32_t epoch, std::int64_t count) noexcept override;
  bool wait_for_epochs(const deadline &until) noexcept;  // for all until now; false: the time passed
  void compute_here(job &work, ref<job> *kept) noexcept;
  void follow_native(stream &in);  // orders the stream's next job after the caller's own work in the native stream
  // Returns a reference to be released without the submission lock. `among`: orders it after conflicting jobs of that
  // tracker; nullptr: of the context's.
  ref<job> put_in_order(job &work, const submission_order &order, const access *accesses, std::size_t access_count,
                        tracker *among = nullptr);

  const machine_model machine_;
  const bool check_hazards_;
  const bool has_job_limit_;
  std::atomic<std::int64_t> here_{0};  // jobs in flight that their submitters compute
  memory_kinds memory_;
  pinned_memory pinned_;
  const node_stagers stagers_;  // before rooms_, whose runs they stage
  const device_array<device_room> rooms_;
  program_cache plans_;
  tracker tracker_;
  struct {
    std::uint64_t succeeded = 0, failed = 0, cancelled = 0;
  } reported_;                         // by counters(); guarded by the submission lock
  epochs in_flight_;                   // guarded by the submission lock, except for completions
  device_buffer *released_ = nullptr;  // buffers to free; guarded by the submission lock
  std::atomic<std::int32_t> released_count_{0};
  std::mutex freeing_lock_;
};

}  // namespace sg
