// SPDX-License-Identifier: Apache-2.0
#include "run/dispatch/stager.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "run/job/job.hpp"

namespace sg {

namespace {
// Waking a thread whose core sleeps costs its waker some 25 us in a virtual machine (no record is kept), so woken
// threads wake the others.
constexpr int woken_at_once = 2;
}  // namespace

stager::~stager() {
  {
    const std::lock_guard lock(lock_);
    closing_ = true;
  }
  changed_.notify_all();
  for (thread &each : threads_) each.join();
}

void stager::start_thread() {
  threads_.reserve(static_cast<std::size_t>(wanted_));
  threads_.emplace_back("sg-staging", [this] { this->work(); });
}

void stager::insert(inflight_command &work) noexcept {
  const auto goes_before = [&](const inflight_command &other) {
    return other.owner == work.owner ? work.index < other.index : work.owner->priority > other.owner->priority;
  };
  inflight_command **place = &first_;
  while (*place && !goes_before(**place)) place = &(*place)->next;
  work.next = *place;
  *place = &work;
}

void stager::add(inflight_command *first) {
  int count = 0;
  for (const inflight_command *work = first; work; work = work->next) ++count;
  std::unique_lock lock(lock_);
  try {
    for (int awake = count - idle_; awake > 0 && static_cast<int>(threads_.size()) < wanted_; --awake) start_thread();
  } catch (const error &) {
    if (threads_.empty()) throw;
  }
  for (inflight_command *next = nullptr; first; first = next) {
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
    inflight_command &next = *first_;
    first_ = next.next;
    if (!first_ || idle_ == 0) wakes = 0;
    lock.unlock();
    for (; wakes > 0; --wakes) changed_.notify_one();
    move_(next);
    lock.lock();
  }
}

}  // namespace sg
