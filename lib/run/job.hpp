// SPDX-License-Identifier: Apache-2.0
// A job: one submission, from the call that made it until its outcome is forgotten. Records are pooled and reused.
//
// Life: taken from the pool -> dependencies added -> (all ended) ready -> run by the engine -> finish() -> recycled when
// the last reference is gone. Until finish() the engine holds one reference.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <streamgemm/backend.h>
#include <streamgemm/job.h>

#include "base/futex.hpp"
#include "base/handle.hpp"
#include "base/object.hpp"
#include "run/binding.hpp"
#include "run/compiled_plan.hpp"
#include "run/flight.hpp"

namespace sg {

class context;
class completion_queue;
class job;
class job_pool;
class schedule_run;

// A successor's place in its predecessor's list. It belongs to the successor.
struct dependency {
  dependency *next = nullptr;
  job *successor = nullptr;
  bool needs_success = false;  // the successor fails when the predecessor does
};

// A callback that waits for a job's end. Owns a reference of the caller's to the handle that the callback receives.
struct callback_request {
  callback_request *next = nullptr;
  void (*run)(handle_bits handle, sg_status status, void *user, void *fn) = nullptr;
  void *fn = nullptr;
  void *user = nullptr;
  handle_bits handle = 0;
  object_type handle_type = object_type::job;
  ref<job> about;
};

// A list that many push to and one closes, taking what was pushed. Tagged with the record's incarnation, so that a push
// aimed at an earlier use of the record fails.
template <class Node>
class closing_list {
 public:
  void reopen(std::uint16_t tag) noexcept { word_.store(std::uint64_t{tag} << 48, std::memory_order_release); }
  Node *latest() const noexcept {  // to compare, not to follow
    return reinterpret_cast<Node *>(word_.load(std::memory_order_acquire) & pointer_mask);
  }
  bool push(Node *node, std::uint16_t tag) noexcept {  // false: closed, or another incarnation
    std::uint64_t word = word_.load(std::memory_order_acquire);
    do {
      if (word >> 48 != tag || (word & pointer_mask) == closed) return false;
      node->next = reinterpret_cast<Node *>(word & pointer_mask);
    } while (!word_.compare_exchange_weak(word, std::uint64_t{tag} << 48 | reinterpret_cast<std::uintptr_t>(node),
                                          std::memory_order_acq_rel));
    return true;
  }
  Node *close() noexcept {  // latest first
    std::uint64_t word = word_.load(std::memory_order_acquire);
    while (!word_.compare_exchange_weak(word, (word & ~pointer_mask) | closed, std::memory_order_acq_rel)) {
    }
    return reinterpret_cast<Node *>(word & pointer_mask);
  }

 private:
  static constexpr std::uint64_t pointer_mask = (1ull << 48) - 1;
  static constexpr std::uint64_t closed = 1;
  std::atomic<std::uint64_t> word_{0};
};

// What a job does once it is ready.
enum class work_kind : std::uint8_t {
  marker,    // nothing: it ends when what it was ordered after has ended
  copy,      // one copy
  schedule,  // a compiled plan
};

class job final : public object {
 public:
  static constexpr int inline_dependencies = 6;

  job() noexcept;
  ~job() override;

  // --- the submitter's, before submit ---
  void begin(ref<context> owner) noexcept;  // a fresh incarnation
  // Orders this job after `before` unless that has ended. Of several orders after the same job the first counts. Throws
  // std::bad_alloc. `tag`: the incarnation meant.
  void order_after(job &before, std::uint16_t tag, bool needs_success);
  // `before` has ended, though perhaps at a time of the device's clock that is still to come.
  void comes_after_end_of(const job &before, std::uint16_t tag) noexcept;
  void not_before(std::int64_t device_ns) noexcept;
  void fail_dependency() noexcept { dependency_failed_.store(true, std::memory_order_relaxed); }
  // The submitter has added all dependencies: from now on the job may run. Takes one reference for the engine.
  void submit() noexcept;

  // --- the engine's ---
  // Notes a failure; the first one is the job's. Any thread, until finish().
  void fail(sg_status status, const char *message) noexcept;
  bool failed() const noexcept { return failure_.load(std::memory_order_acquire) != SG_STATUS_OK; }
  void finish() noexcept;
  bool cancel_requested() const noexcept { return cancel_.load(std::memory_order_relaxed); }
  bool dependency_failed() const noexcept { return dependency_failed_.load(std::memory_order_relaxed); }
  void ran(const flight &command) noexcept;  // one command has run; not called by two threads at once
  std::int64_t ready_ns() const noexcept { return ready_ns_.load(std::memory_order_relaxed); }

  // --- anyone's who holds a reference ---
  std::uint16_t incarnation() const noexcept { return incarnation_.load(std::memory_order_acquire); }
  bool done() const noexcept { return (state_.load() & done_bit) != 0; }
  sg_status status() const noexcept { return status_; }  // once done
  const char *message() const noexcept { return message_; }
  std::int64_t end_ns() const noexcept { return end_ns_.load(std::memory_order_relaxed); }
  bool wait(const deadline &until) noexcept;  // false: the time passed
  bool request_cancel() noexcept;             // false: it had ended
  void call_back(callback_request *request) noexcept;  // takes it over
  void statistics(sg_job_statistics &out) const noexcept;
  context &owner() const noexcept { return *owner_; }

  // --- the work, set by the submitter and read by the engine ---
  work_kind kind = work_kind::marker;
  std::int8_t priority = 0;  // -1, 0, 1
  sg_backend_copy copy{};
  std::shared_ptr<const compiled_plan> plan;
  binding operands;
  ref<completion_queue> queue;
  std::uint64_t tag = 0;
  std::uint32_t generation = 0;     // of context::synchronize

  // --- the engine's own ---
  job *next = nullptr;              // in its inbox and lists
  job *next_completion = nullptr;   // in its completion queue
  flight single;                    // of a job with one command
  std::unique_ptr<schedule_run> run;  // of a job with several
  const job_pool *pool = nullptr;   // that the record belongs to, for good: one for each context
  std::uint32_t pool_index = 0;     // in the pool
  std::atomic<std::uint32_t> next_free{0};

 private:
  friend class job_pool;
  static constexpr std::uint32_t done_bit = 1, waited_bit = 2;

  void last_ref_dropped() noexcept override;
  void dependency_ended(bool failed, std::int64_t end_ns) noexcept;

  ref<context> owner_;
  std::atomic<std::uint32_t> state_{0};  // a futex
  std::atomic<std::uint16_t> incarnation_{0};
  std::atomic<bool> cancel_{false};
  std::atomic<std::int32_t> failure_{SG_STATUS_OK};
  std::atomic<bool> dependency_failed_{false};
  std::atomic<std::int32_t> blockers_{0};
  std::atomic<std::int64_t> ready_ns_{0};
  sg_status status_ = SG_STATUS_OK;
  closing_list<dependency> successors_;
  closing_list<callback_request> callbacks_;
  dependency dependencies_[inline_dependencies];
  int dependency_count_ = 0;
  std::vector<std::unique_ptr<dependency>> more_dependencies_;
  static constexpr std::int64_t unset = INT64_MIN;
  std::int64_t start_ns_ = unset, busy_ns_ = 0;
  std::atomic<std::int64_t> end_ns_{0};
  std::int32_t commands_run_ = 0;
  char message_[240] = "";
};

// Sleeps until some job of the process has ended. `seen` is the count before the caller looked at its jobs.
class job_ends {
 public:
  job_ends() noexcept;   // begins to watch
  ~job_ends();
  std::uint32_t count() const noexcept;
  void wait(std::uint32_t seen, const deadline &until) const noexcept;
  static void announce() noexcept;
};

}  // namespace sg
