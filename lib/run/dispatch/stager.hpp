// SPDX-License-Identifier: Apache-2.0
// Host threads that move data between pageable memory and pinned slots.
#pragma once

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
  stager(int workers, std::function<void(inflight_command &)> move) : wanted_(workers), move_(std::move(move)) {}
  ~stager();  // no command is queued

  // Queues a list (by `next`) of commands of one job: behind other jobs of its priority, and in schedule order among
  // its own. Throws sg::error if no thread can be started; then none is queued.
  void add(inflight_command *first);

 private:
  void start_thread();
  void insert(inflight_command &work) noexcept;
  void work();

  const int wanted_;
  const std::function<void(inflight_command &)> move_;
  std::mutex lock_;
  std::condition_variable changed_;
  inflight_command *first_ = nullptr;
  int idle_ = 0;
  bool closing_ = false;
  std::vector<thread> threads_;
};

}  // namespace sg
