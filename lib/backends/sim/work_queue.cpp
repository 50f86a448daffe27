// SPDX-License-Identifier: Apache-2.0
#include "work_queue.hpp"

#include <pthread.h>

#include <cfenv>
#include <csignal>
#include <new>
#include <system_error>

namespace sg::sim {

namespace {

// A thread inherits its creator's signal mask: signals are the application's, none may be handled here.
std::thread start_without_signals(std::function<void()> body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread started(std::move(body));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
  } catch (const std::system_error &fault) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw failure(SG_STATUS_OUT_OF_MEMORY, "no thread for a simulated stream: %s", fault.what());
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

}  // namespace

void work_queue::push(std::list<task> &one) {
  const auto keep = shared_from_this();  // what is pushed may end, and destroy the stream, before this has returned
  std::unique_lock lock(mutex_);
  if (refusing_) throw failure(SG_STATUS_SHUTDOWN, "the process is exiting");
  if (thread_id_ == std::thread::id()) {
    thread_ = start_without_signals([self = shared_from_this()] { self->serve(); });
    thread_id_ = thread_.get_id();
  }
  waiting_.splice(waiting_.end(), one);
  ++pushed_count_;
  lock.unlock();  // so that the woken thread need not wait for it
  pushed_or_stopped_.notify_one();
}

work_queue::ticket work_queue::last() const {
  std::lock_guard lock(mutex_);
  return pushed_count_;
}

bool work_queue::has_ended(ticket until) const {
  std::lock_guard lock(mutex_);
  return ended_count_ >= until;
}

void work_queue::wait(ticket until) {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return ended_count_ >= until; });
}

void work_queue::refuse() {
  std::lock_guard lock(mutex_);
  refusing_ = true;
}

void work_queue::settle() {
  std::unique_lock lock(mutex_);
  // A callback that makes the process exit is itself the task that runs: its thread cannot wait for itself.
  if (thread_id_ == std::this_thread::get_id()) return;
  ended_.wait(lock, [&] { return ended_count_ == pushed_count_; });
}

void work_queue::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    pushed_or_stopped_.notify_one();
  }
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id())
    thread_.detach();
  else
    thread_.join();
}

void work_queue::serve() {
  pthread_setname_np(pthread_self(), "sg-sim");
  std::fesetenv(FE_DFL_ENV);  // the creator may round otherwise or flush small numbers to zero
  std::unique_lock lock(mutex_);
  for (;;) {
    pushed_or_stopped_.wait(lock, [&] { return stopped_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::list<task> one;
    one.splice(one.begin(), waiting_, waiting_.begin());
    const bool dropped = refusing_;
    lock.unlock();
    carry_out(one.front(), dropped);
    one.clear();
    lock.lock();
    ++ended_count_;
    lock.unlock();
    ended_.notify_all();
    lock.lock();
  }
}

void work_queue::carry_out(task &todo, bool dropped) {
  const auto remember = [&](const failure &fault) {
    if (unreported_.status() == SG_STATUS_OK) unreported_ = fault;
  };
  try {
    if (dropped) throw failure(SG_STATUS_SHUTDOWN, "the process is exiting");
    if (todo.work) todo.work();
  } catch (const failure &fault) {
    remember(fault);
  } catch (const std::bad_alloc &) {
    remember(failure(SG_STATUS_OUT_OF_MEMORY, "no host memory to work with"));
  } catch (const std::exception &fault) {
    remember(failure(SG_STATUS_BACKEND_FAILURE, "%s", fault.what()));
  }
  if (!todo.done.fn) return;
  const failure told = unreported_;
  unreported_ = failure(SG_STATUS_OK, "%s", "");
  const bool good = told.status() == SG_STATUS_OK;
  const sg_backend_result result{told.status(), good ? nullptr : told.what(), todo.time.start, todo.time.end};
  todo.done.fn(todo.done.user, &result);
}

}  // namespace sg::sim
