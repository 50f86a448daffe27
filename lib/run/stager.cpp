// SPDX-License-Identifier: Apache-2.0
#include "run/stager.hpp"

#include <pthread.h>

#include <system_error>

#include "base/error.hpp"
#include "run/job.hpp"
#include "run/process.hpp"

namespace sg {

stager::~stager() {
  {
    const std::lock_guard lock(lock_);
    closing_ = true;
  }
  changed_.notify_all();
  for (std::thread &thread : threads_) thread.join();
}

void stager::start_thread() {
  threads_.reserve(static_cast<std::size_t>(wanted_));
  const signals_blocked quiet;
  threads_.emplace_back([this] { this->work(); });
  pthread_setname_np(threads_.back().native_handle(), "sg-staging");
}

void stager::insert(flight &work) noexcept {
  const auto goes_before = [&](const flight &other) {
    return other.about == work.about ? work.index < other.index : work.about->priority > other.about->priority;
  };
  flight **place = &first_;
  while (*place && !goes_before(**place)) place = &(*place)->next;
  work.next = *place;
  *place = &work;
}

void stager::add(flight *first) {
  int count = 0;
  for (const flight *work = first; work; work = work->next) ++count;
  std::unique_lock lock(lock_);
  try {
    for (int awake = count - idle_; awake > 0 && static_cast<int>(threads_.size()) < wanted_; --awake) start_thread();
  } catch (const std::system_error &e) {
    if (threads_.empty()) throw error(SG_STATUS_OUT_OF_MEMORY, "a staging thread could not be started: %s", e.what());
  }
  for (flight *next = nullptr; first; first = next) {
    next = first->next;
    insert(*first);
  }
  const bool for_all = count >= idle_;
  lock.unlock();  // so that the woken threads need not wait for it
  // All at once: the first one awake may be given this thread's core.
  if (for_all) return changed_.notify_all();
  for (; count > 0; --count) changed_.notify_one();
}

void stager::work() {
  std::unique_lock lock(lock_);
  for (;;) {
    while (!first_ && !closing_) {
      ++idle_;
      changed_.wait(lock);
      --idle_;
    }
    if (!first_) return;
    flight &next = *first_;
    first_ = next.next;
    lock.unlock();
    move_(next);
    lock.lock();
  }
}

}  // namespace sg
