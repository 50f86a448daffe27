// SPDX-License-Identifier: Apache-2.0
// A job: one submission, from the call that made it until its outcome is forgotten. Records are pooled and reused.
//
// Life: taken from the pool -> dependencies added -> (all ended, or in a lane that it can follow in) ready -> run by
// the engine -> finish() -> recycled when the last reference is gone. Until finish() the engine holds one reference.
//
// Records go from the core that submits to one that tells of ends, and back. Small products are many, so what both
// write for each of them is one cache line, the first.
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
#include "ops/binding.hpp"
#include "run/job/closing_list.hpp"
#include "run/program/inflight_command.hpp"
#include "run/program/program.hpp"
#include "run/program/run_pool.hpp"

namespace sg {

class completion_queue;
class job;
class job_home;
class job_pool;
struct recorded_graph;

// A successor's place in its predecessor's list. It belongs to the successor.
struct dependency {
  dependency *next = nullptr;
  job *successor = nullptr;
  bool needs_success = false;  // the successor fails when the predecessor does
  bool follows = false;  // the successor may start once the predecessor is in a lane; its end waits for the other's
};

// A callback that waits for a job's end. Owns a reference of the caller's to the handle that the callback receives.
struct callback_request {
  callback_request *next = nullptr;
  void (*run)(handle_bits handle, sg_status status, void *user, void *fn) = nullptr;
  void *fn = nullptr;
  void *user = nullptr;
  handle_bits handle = 0;
  object_type handle_type = object_type::job;
  ref<job> target;
};

// What a job does once it is ready.
enum class work_kind : std::uint8_t {
  marker,        // nothing: it ends when what it was ordered after has ended
  copy,          // one copy
  schedule,      // a program
  device_graph,  // a graph that the device runs by itself
  lane_marker,   // an empty command: it ends when what is in its lane before it has ended
};

class alignas(64) job final : public object {
 public:
  static constexpr int inline_dependencies = 6;
  static constexpr std::int64_t longest_help_ns = 2'000'000;  // waking a worker takes about as long as shorter products

  job() noexcept;
  ~job() override;

  // --- the submitter's, before submit ---
  void begin() noexcept;  // a fresh incarnation
  // Orders this job after `before`; false: that has ended. Of several orders after the same job the first counts.
  // Throws std::bad_alloc. `tag`: the incarnation meant.
  bool order_after(job &before, std::uint16_t tag, bool needs_success);
  // `before` has ended, though perhaps at a time of the device's clock that is still to come.
  void follows_completed(const job &before, std::uint16_t tag) noexcept;
  void not_before(std::int64_t device_ns) noexcept;
  // Makes this job a part of another, which then ends after it, and as it does.
  void become_child(job &of, std::int32_t index) noexcept;
  // Names the job in messages, by as much of the text as is kept; "" names nothing.
  void set_label(const char *text) noexcept;
  // What this job needs has failed. `cause`: in the context's unobserved failures; 0: it is not known there.
  void fail_dependency(std::uint64_t cause) noexcept {
    note_cause(cause);
    dependency_failed_.store(true, std::memory_order_relaxed);
  }
  // The same for a job that its submitter computes: true when it comes after no other, and none that it needs has
  // failed.
  bool begin_here() noexcept;
  // The submitter has added all dependencies: from now on the job may run. Hands one reference to the engine.
  void submit() noexcept;

  // --- the engine's ---
  // Notes a failure; the first one is the job's. Any thread, until finish().
  void fail(sg_status status, const char *message) noexcept;
  void fail_with_dependency(const char *consequence) noexcept;  // names the first failure where it is known
  bool failed() const noexcept { return failure_.load(std::memory_order_acquire) != SG_STATUS_OK; }
  // Its one command is in a lane: jobs that may follow on the device can go behind it. Before work_completed().
  void issued(lane_bits lanes) noexcept;  // or it is nothing but what it follows in those lanes
  void announce_issued() noexcept;  // or that it failed to be: of a job in a native lane; or of long work, with its end
  // Its work, of that length, should end then, on CLOCK_MONOTONIC. Who waits for long work is woken to see it.
  void expect_end(std::int64_t at_ns, std::int64_t predicted_ns) noexcept;
  lane_bits behind() const noexcept { return behind_.load(std::memory_order_relaxed); }
  void work_completed() noexcept {
    release_completion();
  }  // or will never begin; the job ends when those it follows have
  bool cancel_requested() const noexcept {
    return cancel_.load(std::memory_order_relaxed) || deadline_passed() || (parent && parent->cancel_requested());
  }
  bool deadline_passed() const noexcept { return deadline_at_ns != 0 && monotonic_ns() >= deadline_at_ns; }
  // Fails as cancelled, or for its deadline. `when`: how far it had come, and what that means for C.
  void fail_early(const char *when) noexcept;
  // What it has failed of, or will; 0: nothing yet.
  std::uint64_t cause() const noexcept { return cause_.load(std::memory_order_relaxed); }
  bool dependency_failed() const noexcept { return dependency_failed_.load(std::memory_order_relaxed); }
  void ran(const inflight_command &command) noexcept;  // one command has run; not called by two threads at once
  void add_time(const inflight_command &command, std::int64_t not_before_ns) noexcept;  // the same
  void completed_in_batch(std::int64_t start_ns, std::int64_t end_ns,
                          std::size_t batch_size) noexcept;  // its work was part of it
  // All commands of its program have run beside each other, for `busy_ns` in sum. The times are 0 where nobody can ask.
  void commands_completed(std::int64_t start_ns, std::int64_t end_ns, std::int64_t busy_ns) noexcept;
  std::int64_t ready_ns() const noexcept { return ready_ns_.load(std::memory_order_relaxed); }

  // --- anyone's who holds a reference ---
  std::uint16_t incarnation() const noexcept { return incarnation_.load(std::memory_order_acquire); }
  bool done() const noexcept { return (state_.load() & done_bit) != 0; }
  sg_status status() const noexcept { return status_; }  // once done
  const char *message() const noexcept { return status_ == SG_STATUS_OK ? "" : message_; }
  const char *label() const noexcept { return has_label_ ? label_ : ""; }
  void mark_observed() const noexcept;  // the program has been told how it ended
  std::int64_t end_ns() const noexcept { return end_ns_.load(std::memory_order_relaxed); }
  bool wait(const deadline &until) noexcept;           // false: the time passed
  void wait_issued() noexcept;                         // of a job in a native lane: until that has it, or it has ended
  bool request_cancel() noexcept;                      // false: it had ended
  void call_back(callback_request *request) noexcept;  // takes it over
  void statistics(sg_job_statistics &out) const noexcept;
  job_home &owner() const noexcept { return *owner_; }
  // What a submission writes of the record, or an end, into this core's caches: another core wrote it last.
  void fetch() const noexcept;
  void fetch_first_line() const noexcept { __builtin_prefetch(this, 1); }

  // The record keeps the program of a single command until it is given another: equal GEMMs follow each other, and the
  // count of their program's owners would be written by every core for each of them.
  void give_program(const std::shared_ptr<const sg::program> &what) noexcept {
    if (program_ != what) program_ = what;
    program = program_.get();
  }
  // The same of what it is to run, which is a run where it has several commands, or where it is to be one in any case.
  // Throws std::bad_alloc.
  void give_schedule(const std::shared_ptr<const sg::program> &what, bool in_run = false) {
    pooled_run fresh = what->is_single() && !in_run ? pooled_run() : new_run(what);
    if (!in_run) may_help = what->predicted_ns() <= longest_help_ns;
    kind = work_kind::schedule;
    give_program(what);
    run = std::move(fresh);
  }
  std::shared_ptr<const sg::program> shared_program() const noexcept { return program ? program_ : nullptr; }

 private:
  friend class job_pool;
  static constexpr std::uint32_t done_bit = 1, waited_bit = 2, issued_bit = 4;
  static constexpr std::int64_t unset = INT64_MIN;

  void last_ref_dropped() noexcept override;
  pooled_run new_run(const std::shared_ptr<const sg::program> &of) const;
  void predecessor_completed(const dependency &how, bool issued, bool failed, std::uint64_t cause,
                             std::int64_t end_ns) noexcept;
  void note_cause(std::uint64_t cause) noexcept {  // the first one counts
    std::uint64_t none = 0;
    if (cause) cause_.compare_exchange_strong(none, cause, std::memory_order_relaxed);
  }
  void leave_failure() noexcept;
  void log_failure() const noexcept;
  void release_start() noexcept;
  void release_completion() noexcept;
  bool looks_plain() const noexcept;
  void complete_in_full(sg_status status) noexcept;
  void finish() noexcept;
  void clear_rest() noexcept;

  // --- The record. Its first line: what an end writes of a product that is plain ---
 public:
  work_kind kind = work_kind::marker;
  std::int8_t priority = 0;        // -1, 0, 1
  bool follows_on_device = false;  // its one command may be queued on the device behind those it waits for
  bool admitted = false;           // counted by the context's job limit
  bool writes_tracked = false;     // the tracker knows of memory that it writes
  // A product with nothing to it but its operands, which comes after no job and goes out in a group. When it ends well
  // and nobody holds it, its end leaves the lines below alone.
  bool plain = false;
  // Short enough for a waiting thread to run what of it no thread has begun. Set before the submission only: waiting
  // threads read it while the engine may replace the program by its low-memory variant.
  bool may_help = false;
  std::uint32_t epoch = 0;  // of context::synchronize

 private:
  std::atomic<std::uint16_t> incarnation_{0};
  std::atomic<bool> cancel_{false};
  std::atomic<bool> dependency_failed_{false};
  std::atomic<std::uint32_t> state_{0};  // a futex
  std::atomic<std::int32_t> failure_{SG_STATUS_OK};
  std::atomic<std::int32_t> holds_{0};       // of the end: the work, and predecessors that it follows on the device
  std::atomic<std::uint32_t> next_free_{0};  // in the pool
  closing_list<dependency> successors_;
  std::atomic<std::int64_t> end_ns_{0};

  // --- What else the submission of every product writes ---
 public:
  alignas(64) const sg::program *program = nullptr;  // see give_program()
  job *next = nullptr;                               // the engine's, in its inbox and lists
  std::int32_t units = 0;                            // compute units that its products may use; 0: all
  std::uint32_t submitter = 0;                       // its stream, or its thread: a number to take turns by
  binding operands;
  std::uint64_t tag = 0;
  std::int64_t deadline_at_ns = 0;  // on CLOCK_MONOTONIC; 0: none
  ref<completion_queue> queue;
  job *parent = nullptr;  // of a part of one; it cannot end before this

 private:
  std::atomic<std::int32_t> blockers_{0};  // of the start: the submitter, and predecessors
  std::int16_t dependency_count_ = 0;
  bool has_label_ = false;  // never of a plain job

 public:
  device_index device{};  // of the machine, whose executor runs it

 private:
  std::atomic<lane_bits> behind_{0};
  std::atomic<lane_bits> issued_lanes_{0};  // of this incarnation or of an earlier one
  std::atomic<std::int64_t> ready_ns_{0};
  std::atomic<std::int64_t> expected_ns_{0};  // when it should end, on CLOCK_MONOTONIC; 0: not known yet
  closing_list<callback_request> callbacks_;

  // --- What stays, or was put back by clear_rest() ---
 public:
  alignas(64) const job_pool *pool = nullptr;  // that the record belongs to: one for each context
  std::uint32_t pool_index = 0;                // in the pool
  lane_slot *native = nullptr;          // the lane that it goes into whatever else there is, while its submission waits
  lane_slot *partition_lane = nullptr;  // the lane of its products, on compute units that are set aside
  // Of a point in such a lane: the device's events that the lane waits for first, and that happens with the point.
  sg_backend_event *awaited = nullptr, *recorded = nullptr;
  inflight_command single;  // of a job with one command
  // Owned until the job completes: the run of a job with several commands, which owns its program; and what a graph's
  // run executes, of which its totals stay. Neither refers to the job.
  pooled_run run;
  std::shared_ptr<const recorded_graph> graph;
  job *next_completion = nullptr;  // in its completion queue
  std::int32_t part_index = 0;
  sg_backend_copy copy{};

 private:
  job_home *owner_ = nullptr;  // a record in use keeps a reference to it
  std::shared_ptr<const sg::program> program_;
  sg_status status_ = SG_STATUS_OK;
  std::atomic<std::uint64_t> cause_{0};
  std::int64_t start_ns_ = unset, busy_ns_ = 0;
  std::int32_t commands_run_ = 0;
  std::vector<std::unique_ptr<dependency>> more_dependencies_;
  dependency dependencies_[inline_dependencies];
  char message_[240] = "";  // of a failure
  char label_[SG_LABEL_SIZE] = "";
};

}  // namespace sg
