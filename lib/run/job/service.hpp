// SPDX-License-Identifier: Apache-2.0
// A context's own thread: runs the application's callbacks, one at a time, and finally destroys the context. It owns
// itself: the last reference to a context may be released on any thread, also on this one or the backend's.
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
  // Starts the thread, which deletes `owner` after retire(). Throws sg::error.
  static service *start(job_home &owner);

  void post(callback_request *request) noexcept;  // takes ownership
  void wake() noexcept;                           // to free unused buffers
  // Requests a sweep of the engine for expired jobs at that time, on CLOCK_MONOTONIC, or at most a millisecond later.
  // Throws std::bad_alloc.
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

// The job whose callback the calling thread runs; nullptr: none. For an event's callback: the job of the recorded
// event.
// Whether this thread runs a function of the application's that a job consists of.
bool in_function_of_job() noexcept;
class function_of_job {
 public:
  function_of_job() noexcept;
  ~function_of_job();
  function_of_job(const function_of_job &) = delete;
  function_of_job &operator=(const function_of_job &) = delete;
};
// Whether the calling thread runs a callback of that context.
bool in_callback_of(const job_home &which) noexcept;

// Runs the callback, unless the process exits, releases its references and deletes the request.
void run_callback(callback_request *request) noexcept;

}  // namespace sg
