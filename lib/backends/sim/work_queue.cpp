// SPDX-License-Identifier: Apache-2.0
#include "work_queue.hpp"

#include <cfenv>
#include <csignal>
#include <cstring>
#include <initializer_list>
#include <new>

namespace sg::sim {

namespace {

// Its main function owns `self`. The thread blocks the application's signals, and has a fixed stack size, whatever the
// process's limit is.
pthread_t start_thread(std::shared_ptr<work_queue> self, void *(*main)(void *)) {
  constexpr std::size_t stack_bytes = std::size_t(8) << 20;
  auto owned = std::make_unique<std::shared_ptr<work_queue>>(std::move(self));
  sigset_t all, before;
  sigfillset(&all);
  // The application handles faults: a blocked fault signal would terminate the process without its handler.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
  pthread_attr_t attributes;
  pthread_t thread{};
  int failed = pthread_attr_init(&attributes);
  if (failed == 0) {
    pthread_attr_setstacksize(&attributes, stack_bytes);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&thread, &attributes, main, owned.get());
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
  }
  if (failed != 0)
    throw failure(SG_STATUS_OUT_OF_MEMORY, "no thread for a simulated stream: %s", std::strerror(failed));
  static_cast<void>(owned.release());  // owned by the thread
  return thread;
}

}  // namespace

void work_queue::push(std::list<task> &one) {
  const auto keep = shared_from_this();  // a pushed task may complete, and destroy the stream, before this returns
  std::unique_lock lock(mutex_);
  if (refusing_) throw failure(SG_STATUS_SHUTDOWN, "the process is exiting");
  if (!started_) {
    thread_ = start_thread(shared_from_this(), [](void *given) -> void * {
      const std::unique_ptr<std::shared_ptr<work_queue>> self(static_cast<std::shared_ptr<work_queue> *>(given));
      (*self)->serve();
      return nullptr;
    });
    started_ = true;
  }
  waiting_.splice(waiting_.end(), one);
  ++pushed_count_;
  lock.unlock();  // so that the woken thread need not wait for the lock
  pushed_or_stopped_.notify_one();
}

work_queue::ticket work_queue::last() const {
  std::lock_guard lock(mutex_);
  return pushed_count_;
}

bool work_queue::has_completed(ticket until) const {
  std::lock_guard lock(mutex_);
  return completed_count_ >= until;
}

void work_queue::wait(ticket until) {
  std::unique_lock lock(mutex_);
  completed_.wait(lock, [&] { return completed_count_ >= until; });
}

void work_queue::refuse() {
  std::lock_guard lock(mutex_);
  refusing_ = true;
}

void work_queue::settle() {
  std::unique_lock lock(mutex_);
  // A callback that makes the process exit is the running task: its thread cannot wait for itself.
  if (started_ && pthread_equal(thread_, pthread_self())) return;
  completed_.wait(lock, [&] { return completed_count_ == pushed_count_; });
}

void work_queue::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    pushed_or_stopped_.notify_one();
  }
  if (!started_) return;
  if (pthread_equal(thread_, pthread_self()))
    pthread_detach(thread_);
  else
    pthread_join(thread_, nullptr);
}

void work_queue::serve() {
  pthread_setname_np(pthread_self(), "sg-sim");
  std::fesetenv(FE_DFL_ENV);  // the creating thread may have another rounding mode or flush subnormals
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
    ++completed_count_;
    lock.unlock();
    completed_.notify_all();
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
  const failure outcome = unreported_;
  unreported_ = failure(SG_STATUS_OK, "%s", "");
  const bool good = outcome.status() == SG_STATUS_OK;
  const sg_backend_result result{outcome.status(), good ? nullptr : outcome.what(), todo.time.start, todo.time.end};
  todo.done.fn(todo.done.user, &result);
}

}  // namespace sg::sim
