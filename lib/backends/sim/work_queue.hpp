// SPDX-License-Identifier: Apache-2.0
// The real execution of a simulated stream: a queue of tasks that a thread runs in order. The thread starts with the
// first task, so an unused stream costs nothing.
#pragma once

#include <pthread.h>
#include <streamgemm/backend.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include "failure.hpp"
#include "timeline.hpp"

namespace sg::sim {

struct task {
  std::function<void()> work;  // may throw; empty: no work
  span time;                   // reported to `done`
  sg_backend_done done{nullptr, nullptr};
};

// Lives until its thread has exited, even if a callback on that thread destroys the stream.
class work_queue : public std::enable_shared_from_this<work_queue> {
 public:
  using ticket = std::uint64_t;

  // Adds the one task of `one`. Throws failure if no thread can be started, or after refuse(); nothing is added then.
  void push(std::list<task> &one);

  // The ticket of the latest task.
  ticket last() const;

  // Whether all tasks up to `until` have completed; wait() waits for that.
  bool has_completed(ticket until) const;
  void wait(ticket until);

  // No further task starts: the running one completes, the others complete with SG_STATUS_SHUTDOWN.
  void refuse();
  // Waits until every task has completed.
  void settle();

  // Stops the thread. The queue is empty.
  void stop();

 private:
  void serve();
  void carry_out(task &todo, bool dropped);

  mutable std::mutex mutex_;
  std::condition_variable pushed_or_stopped_;
  std::condition_variable completed_;
  std::list<task> waiting_;
  ticket pushed_count_ = 0;
  ticket completed_count_ = 0;
  bool refusing_ = false;
  bool stopped_ = false;
  pthread_t thread_{};
  bool started_ = false;
  failure unreported_{SG_STATUS_OK, "%s", ""};  // of a task without a callback; used by the thread only
};

}  // namespace sg::sim
