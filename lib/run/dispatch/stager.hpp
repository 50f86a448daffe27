// SPDX-License-Identifier: Apache-2.0
// Host threads that move data between pageable memory and pinned slots.
#pragma once

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "base/thread.hpp"
#include "run/program/inflight_command.hpp"

namespace sg {

class stager {
 public:
  // `move` executes one command on a worker's thread; it must not throw.
  // `polling`: how many of them poll for a short time before they sleep. `cores`: those on which they run, of the ones
  // that the process may use; empty: all.
  stager(int workers, int polling, std::function<void(inflight_command &)> move, const cpu_set_t &cores = {})
      : wanted_(workers), most_polling_(polling), move_(std::move(move)), cores_(cores) {}
  ~stager();  // no command is queued
  int workers() const noexcept { return wanted_; }

  // Queues a list (by `next`) of commands of one job: behind other jobs of its priority, and in schedule order among
  // its own. Throws sg::error if no thread can be started; then none is queued.
  void add(inflight_command *first);
  // Takes the next queued command of a job, for a thread that waits for it; nullptr: none is queued.
  inflight_command *take(const job &of) noexcept;

 private:
  void start_thread();
  void insert(inflight_command &work) noexcept;
  void work();
  void poll(std::unique_lock<std::mutex> &lock) noexcept;

  const int wanted_, most_polling_;
  const std::function<void(inflight_command &)> move_;
  const cpu_set_t cores_;
  std::mutex lock_;
  std::condition_variable changed_;
  inflight_command *first_ = nullptr;
  std::atomic<bool> has_work_{false};  // whether there is a first one, for idle threads that poll
  int idle_ = 0, polling_ = 0;         // threads; those that poll are idle, too
  bool closing_ = false;
  std::vector<thread> threads_;
};

}  // namespace sg
