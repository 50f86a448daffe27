// SPDX-License-Identifier: Apache-2.0
// A job: the record of one submission, from the call until its outcome is no longer referenced. Records are pooled.
//
// Life: acquired from the pool -> dependencies added -> ready, once each predecessor has completed or is in a lane that
// the job can follow in -> run by the engine -> finish() -> recycled when the last reference is released. Until
// finish() the engine holds one reference.
//
// Records move from the submitting core to the completing core and back. Small GEMMs are many, so the members that both
// write for each of them are in one cache line, the first.
#pragma once

#include <streamgemm/backend.h>
#include <streamgemm/job.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/futex.hpp"
#include "base/handle.hpp"
#include "base/object.hpp"
#include "base/relaxed.hpp"
#include "ops/binding.hpp"
#include "ops/copy.hpp"
#include "run/job/closing_list.hpp"
#include "run/job/failure_causes.hpp"
#include "run/job/failure_text.hpp"
#include "run/program/inflight_command.hpp"
#include "run/program/program.hpp"
#include "run/program/run_pool.hpp"

namespace sg {

class completion_queue;
class job;
class job_home;
class job_pool;
struct recorded_graph;

// A node in the predecessor's list of successors. The successor owns it.
struct dependency {
  dependency *next = nullptr;
  job *successor = nullptr;
  bool needs_success = false;  // the successor fails if the predecessor fails
  // The successor may start once the predecessor is in a lane; it completes after the predecessor.
  bool follows = false;
};

// A requested callback at a job's completion. Owns the reference to the handle that it receives. Of a user_release:
// without a job.
struct callback_request {
  callback_request *next = nullptr;
  void (*run)(handle_bits handle, sg_status status, void *user, void *fn) = nullptr;
  void *fn = nullptr;
  void *user = nullptr;
  handle_bits handle = 0;
  object_type handle_type = object_type::job;
  ref<job> target;
  ref<job_home> home;  // without a job: the context
};

class alignas(64) job final : public object {
 public:
  static constexpr int inline_dependencies = 6;
  static constexpr std::int64_t longest_help_ns = 2'000'000;  // waking a worker takes about as long as a shorter GEMM

  job() noexcept;
  ~job() override;

  // --- Submitter, before submit() ---
  void begin() noexcept;  // starts a new incarnation
  // Orders this job after `before`, incarnation `tag`; false: that has completed. The first order after a job counts.
  // Throws std::bad_alloc.
  bool order_after(job &before, std::uint16_t tag, bool needs_success);
  // `before` has completed, perhaps at a future time of the device's clock.
  void follows_completed(const job &before, std::uint16_t tag) noexcept;
  void not_before(std::int64_t device_ns) noexcept;
  // Makes this job a child of another, which completes after all its children and fails if one fails.
  void become_child(job &of, std::int32_t index) noexcept;
  // Names the job in messages; a long text is cut. "": no name.
  void set_label(const char *text) noexcept;
  // A predecessor has failed. `causes`: in the context's unobserved failures.
  void fail_dependency(const failure_causes &causes) noexcept {
    causes_.add(causes);
    dependency_failed_.store(true, std::memory_order_relaxed);
  }
  // Begins a job that its submitter computes. True: no predecessor is incomplete, and none that it needs has failed.
  bool begin_here() noexcept;
  // All dependencies are added: the job may run from now on. Passes one reference to the engine.
  void submit() noexcept;

  // --- Engine ---
  // Records a failure; the first one counts. Any thread, until finish().
  void fail(sg_status status, const char *message) noexcept;
  void fail_with_dependency(const char *consequence) noexcept;  // names the first failure where that is known
  bool failed() const noexcept { return failure_.load(std::memory_order_acquire) != SG_STATUS_OK; }
  // The job's one command, or for a marker its predecessors, are in these lanes: successors may follow it there. Before
  // work_completed().
  void issued(lane_bits lanes, copy_marks marks) noexcept;
  // Wakes threads that wait until a job in a native lane is enqueued or has failed, or a long job's end is predicted.
  void announce_issued() noexcept;
  // Sets the expected end, on CLOCK_MONOTONIC, and the predicted duration. Wakes threads that wait for a long job.
  void expect_end(std::int64_t at_ns, std::int64_t predicted_ns) noexcept;
  lane_bits behind() const noexcept { return behind_.load(std::memory_order_relaxed); }
  copy_marks behind_marks() const noexcept {
    return {behind_in_.load(std::memory_order_relaxed), behind_out_.load(std::memory_order_relaxed)};
  }
  // The job completes once the predecessors that it follows on the device have.
  void work_completed() noexcept { release_completion(); }
  bool cancel_requested() const noexcept {
    return cancel_.load(std::memory_order_relaxed) || deadline_passed() || (parent && parent->cancel_requested());
  }
  bool deadline_passed() const noexcept { return deadline_at_ns != 0 && monotonic_ns() >= deadline_at_ns; }
  // Fails the job as cancelled, or for its deadline. `when`: its progress, and the resulting state of C.
  void fail_early(const char *when) noexcept;
  const failure_causes &causes() const noexcept { return causes_; }
  // All children of a graph's run have completed: it fails as the first of them that failed, in recording order.
  void fail_as_children() noexcept;
  bool dependency_failed() const noexcept { return dependency_failed_.load(std::memory_order_relaxed); }
  void begins(std::size_t commands) noexcept {  // its run begins, or a graph's run with so many children
    commands_.store(static_cast<std::int32_t>(commands), std::memory_order_relaxed);
  }
  void ran(const inflight_command &command) noexcept;  // one command has completed; calls are serialized
  void add_time(const inflight_command &command, std::int64_t not_before_ns) noexcept;  // likewise
  void completed_in_batch(std::int64_t start_ns, std::int64_t end_ns,
                          std::size_t batch_size) noexcept;  // as a member of a batch
  // All commands of its program ran in parallel, `busy_ns` in sum. The times are 0 where no caller can query them.
  void commands_completed(std::int64_t start_ns, std::int64_t end_ns, std::int64_t busy_ns) noexcept;
  void add_child(const job &completed) noexcept;  // children may complete at the same time
  std::int64_t ready_ns() const noexcept { return ready_ns_.load(std::memory_order_relaxed); }

  // --- Any holder of a reference ---
  std::uint16_t incarnation() const noexcept { return incarnation_.load(std::memory_order_acquire); }
  bool done() const noexcept { return (state_.load() & done_bit) != 0; }
  sg_status status() const noexcept { return status_; }  // valid once done
  const char *message() const noexcept { return status_ == SG_STATUS_OK ? "" : message_.c_str(); }
  const char *label() const noexcept { return has_label_ ? label_ : ""; }
  void mark_observed() const noexcept;  // the application has observed the outcome
  std::int64_t end_ns() const noexcept { return end_ns_.load(std::memory_order_relaxed); }
  bool wait(const deadline &until) noexcept;  // false: timed out
  void wait_issued() noexcept;                // of a job in a native lane: until it is enqueued there, or completed
  bool request_cancel() noexcept;             // false: already completed
  void call_back(callback_request *request) noexcept;  // takes ownership
  void statistics(sg_job_statistics &out) const noexcept;
  double progress() const noexcept;  // 0 to 1, by commands, or by children
  job_home &owner() const noexcept { return *owner_; }
  // Prefetches for writing the lines that a submission, or a completion, writes: another core wrote them last.
  void fetch() const noexcept;
  void fetch_first_line() const noexcept { __builtin_prefetch(this, 1); }

  // The record keeps the program of its latest single command: equal GEMMs follow each other, and otherwise each core
  // would write the program's reference count for each of them.
  void give_program(const std::shared_ptr<const sg::program> &what) noexcept {
    if (program_ != what) program_ = what;
    program = program_.get();
  }
  // Sets the work. The engine runs a program of several commands as a run.
  void give_work(const std::shared_ptr<const sg::program> &what) noexcept {
    may_help = what->computes && what->predicted_ns() <= longest_help_ns;
    give_program(what);
    device = what->device();
    is_run = !what->is_single();
  }
  void drop_work() noexcept {
    program = nullptr;
    is_run = false;
  }
  // Engine: acquires the run, unless the job has it, or replaces program and run. Throw std::bad_alloc.
  void acquire_run();
  void replace_program(const std::shared_ptr<const sg::program> &what);
  std::shared_ptr<const sg::program> shared_program() const noexcept { return program ? program_ : nullptr; }

 private:
  friend class job_pool;
  static constexpr std::uint32_t done_bit = 1, waited_bit = 2, issued_bit = 4;
  static constexpr std::int64_t unset = INT64_MIN;

  void last_ref_dropped() noexcept override;
  // `causes`: why it failed; nullptr: it has not.
  void predecessor_completed(const dependency &how, bool issued, const failure_causes *causes,
                             std::int64_t end_ns) noexcept;
  void child_failed(const job &child) noexcept;
  void record_failure() noexcept;
  void log_failure() const noexcept;
  std::uint64_t device_bits() const noexcept;  // bit i for device i that has commands of it; 0: it has no work
  void record_completion() noexcept;
  void release_start() noexcept;
  void follow(lane_bits lanes, copy_marks marks) noexcept;
  void release_completion() noexcept;
  bool looks_plain() const noexcept;
  void complete_in_full(sg_status status) noexcept;
  void count_moved_bytes() noexcept;  // of a job that failed, whose run is still there
  void finish() noexcept;
  void clear_rest() noexcept;

  // --- First cache line: all that the completion of a plain job writes ---
 public:
  std::int8_t priority = 0;        // -1, 0, 1
  bool follows_on_device = false;  // its one command may be queued on the device behind its predecessors
  bool admitted = false;           // counted by the context's job limit
  bool writes_tracked = false;     // the tracker holds writes of this job
  // One GEMM with operands only: no predecessor, no queue, label or deadline; dispatched in a batch. If it succeeds and
  // has no other holder, its completion does not touch the lines below.
  bool plain = false;
  // Short enough for a waiting thread to execute its unstarted commands. Set before submission only: waiting threads
  // read it while the engine may replace the program by its low-memory variant.
  bool may_help = false;
  bool is_run = false;               // of several commands, which the engine runs one by one
  std::uint32_t epoch = 0;           // of context::synchronize
  std::uint64_t loaded_devices = 0;  // those in whose load it counts, bit i for device i

 private:
  std::atomic<std::uint16_t> incarnation_{0};
  std::atomic<bool> cancel_{false};
  std::atomic<bool> dependency_failed_{false};
  std::atomic<std::uint32_t> state_{0};  // a futex
  std::atomic<std::int32_t> failure_{SG_STATUS_OK};
  std::atomic<std::int32_t> holds_{0};  // on its completion: the work, and predecessors that it follows on the device
  std::atomic<std::uint32_t> next_free_{0};  // in the pool
  closing_list<dependency> successors_;
  std::atomic<std::int64_t> end_ns_{0};

  // --- Other members that each GEMM's submission writes ---
 public:
  // The work; nullptr: none, the job is a marker, which completes when its predecessors have. See give_program().
  alignas(64) const sg::program *program = nullptr;
  job *next = nullptr;          // link of the engine's inbox and lists
  std::int32_t units = 0;       // compute units that its GEMMs may use; 0: all
  std::uint32_t submitter = 0;  // a stream's or thread's number, for fair sharing
  binding operands;
  std::uint64_t tag = 0;
  std::uint64_t trace_id = 0;       // of the application's request; 0: none
  std::uint64_t trace_number = 0;   // in a trace; 0: nothing of it is recorded
  std::int64_t deadline_at_ns = 0;  // on CLOCK_MONOTONIC; 0: none
  ref<completion_queue> queue;
  job *parent = nullptr;  // the parent completes after this job; nullptr: none

 private:
  std::atomic<std::int32_t> blockers_{0};  // on its start: the submitter, and predecessors
  std::int16_t dependency_count_ = 0;
  bool has_label_ = false;  // false for plain jobs

 public:
  relaxed<device_index> device;  // of the machine, whose engine runs it; a successor of an incarnation before reads it

 private:
  std::atomic<lane_bits> behind_{0};
  std::atomic<std::uint64_t> behind_in_{0}, behind_out_{0};  // marks of these lanes
  std::atomic<lane_bits> issued_lanes_{0};                   // of this incarnation or of an earlier one, as the marks
  std::atomic<std::uint64_t> issued_in_{0}, issued_out_{0};
  std::atomic<std::int64_t> ready_ns_{0};
  std::atomic<std::int64_t> expected_ns_{0};  // expected end on CLOCK_MONOTONIC; 0: unknown
  closing_list<callback_request> callbacks_;

  // --- Members that begin() leaves alone; clear_rest() resets them ---
 public:
  alignas(64) const job_pool *pool = nullptr;  // the context's pool, which owns the record
  std::uint32_t pool_index = 0;                // in the pool
  lane_slot *native = nullptr;                 // lane of the caller's native stream that its command must use
  lane_slot *partition_lane = nullptr;         // lane of its GEMMs on reserved compute units
  // Of a marker in a dedicated lane: the native events that the lane waits for, and records.
  sg_backend_event *awaited = nullptr, *recorded = nullptr;
  inflight_command single;  // the command of a job with one command
  // Owned until completion: the run of a job with several commands, from its start, which owns its program; and the
  // program of a graph's run, of which only totals stay. Neither refers to the job.
  pooled_run run;
  std::shared_ptr<const recorded_graph> graph;
  std::shared_ptr<void> kept;      // what its function uses, until completion: a user_release
  job *next_completion = nullptr;  // in its completion queue
  std::int32_t child_index = 0;
  std::uint64_t profiler_range = 0;  // from the submission to the completion; 0: none

 private:
  job_home *owner_ = nullptr;  // a record in use holds a reference to it
  std::shared_ptr<const sg::program> program_;
  sg_status status_ = SG_STATUS_OK;
  failure_causes causes_;
  // Of a graph's run: the first failed child in recording order, its status and its text.
  std::int32_t failed_child_ = INT32_MAX;
  sg_status child_status_ = SG_STATUS_OK;
  failure_text child_message_;
  std::int64_t start_ns_ = unset, busy_ns_ = 0;
  bytes_moved moved_;                                        // of a completed job that failed, for its statistics
  std::atomic<std::int32_t> commands_run_{0}, commands_{0};  // or children; commands_: 0 before it starts
  std::vector<std::unique_ptr<dependency>> more_dependencies_;
  dependency dependencies_[inline_dependencies];
  failure_text message_;  // of its failure
  char label_[SG_LABEL_SIZE] = "";
};

}  // namespace sg
