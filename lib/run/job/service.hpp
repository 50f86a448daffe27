// SPDX-License-Identifier: Apache-2.0
// A context's own thread: it calls the application's callbacks, one at a time, and in the end takes the context down.
// It belongs to itself, because the last reference to a context may go on any thread, this one and the backend's
// included.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>

#include "run/job/job.hpp"

namespace sg {

class job_home;

class service {
 public:
  // Starts the thread; `owner` is deleted by it after retire(). Throws sg::error.
  static service *start(job_home &owner);

  void post(callback_request *request) noexcept;  // takes it over
  void wake() noexcept;                           // to look for buffers to free
  // Lets the engine look for jobs to end early then, on CLOCK_MONOTONIC, or at most a millisecond later. Throws
  // std::bad_alloc.
  void sweep_at(std::int64_t ns);
  void retire() noexcept;

 private:
  explicit service(job_home &owner) noexcept : owner_(owner) {}
  void run() noexcept;
  void serve() noexcept;
  deadline sweep_due() noexcept;  // the next one

  job_home &owner_;
  std::atomic<callback_request *> posted_{nullptr};
  static constexpr std::uint32_t retired_bit = 1;
  std::mutex sweeps_lock_;
  std::set<std::int64_t> sweeps_;          // times, in whole milliseconds
  std::atomic<std::uint32_t> changes_{0};  // a futex: twice the number of posts, and retired_bit
};

// The job that the calling thread's callback is about; nullptr outside callbacks. For an event's callback, the job that
// the event was recorded as.
const job *job_of_current_callback() noexcept;
// Whether the calling thread runs a callback of that context.
bool in_callback_of(const job_home &which) noexcept;

// Calls it (unless the process exits), drops what it holds and deletes it.
void run_callback(callback_request *request) noexcept;

}  // namespace sg
