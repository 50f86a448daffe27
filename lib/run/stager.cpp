// SPDX-License-Identifier: Apache-2.0
#include "run/stager.hpp"

#include <pthread.h>

#include <system_error>

#include "base/error.hpp"
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

void stager::add(flight &work) {
  std::unique_lock lock(lock_);
  if (idle_ == 0 && static_cast<int>(threads_.size()) < wanted_) {
    try {
      threads_.reserve(static_cast<std::size_t>(wanted_));
      const signals_blocked quiet;
      threads_.emplace_back([this] { this->work(); });
      pthread_setname_np(threads_.back().native_handle(), "sg-staging");
    } catch (const std::system_error &e) {
      if (threads_.empty()) throw error(SG_STATUS_OUT_OF_MEMORY, "a staging thread could not be started: %s", e.what());
    }
  }
  work.next = nullptr;
  (first_ ? last_->next : first_) = &work;
  last_ = &work;
  lock.unlock();  // so that the woken thread need not wait for it
  changed_.notify_one();
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
