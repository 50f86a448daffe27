// SPDX-License-Identifier: Apache-2.0
#include "run/stager.hpp"

#include <pthread.h>

#include <algorithm>
#include <system_error>

#include "base/error.hpp"
#include "run/job.hpp"
#include "run/process.hpp"

namespace sg {

namespace {
// To wake a thread whose core sleeps takes its waker some 25 us in a virtual machine (no record is kept), so those
// woken wake the others.
constexpr int woken_at_once = 2;
}  // namespace

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
  lock.unlock();  // so that the woken threads need not wait for it
  for (count = std::min(count, woken_at_once); count > 0; --count) changed_.notify_one();
}

void stager::work() {
  std::unique_lock lock(lock_);
  for (;;) {
    int wakes = 1;
    while (!first_ && !closing_) {
      ++idle_;
      changed_.wait(lock);
      --idle_;
      wakes = woken_at_once;
    }
    if (!first_) return;
    flight &next = *first_;
    first_ = next.next;
    if (!first_ || idle_ == 0) wakes = 0;
    lock.unlock();
    for (; wakes > 0; --wakes) changed_.notify_one();
    move_(next);
    lock.lock();
  }
}

}  // namespace sg
