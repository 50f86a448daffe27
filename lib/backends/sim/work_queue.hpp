// SPDX-License-Identifier: Apache-2.0
// The real side of a simulated stream: a queue of tasks that one thread of its own carries out in order. The thread
// starts with the first task, so a stream that is never used costs nothing.
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
  std::function<void()> work;  // may throw; empty: nothing to do
  span time;                   // reported to `done`
  sg_backend_done done{nullptr, nullptr};
};

// Lives until its thread has ended, even when the stream was destroyed by a callback on that very thread.
class work_queue : public std::enable_shared_from_this<work_queue> {
 public:
  using ticket = std::uint64_t;

  // Adds the one task of `one`. Throws failure when no thread can be had, or after refuse(); nothing is added then.
  void push(std::list<task> &one);

  // Names the end of what has been pushed so far.
  ticket last() const;

  // Whether everything up to `until` has ended; wait() returns when it has.
  bool has_completed(ticket until) const;
  void wait(ticket until);

  // No task begins any more: the running one completes, the others with SG_STATUS_SHUTDOWN.
  void refuse();
  // Returns when every task has ended.
  void settle();

  // Ends the thread. Nothing is queued any more.
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
