// SPDX-License-Identifier: Apache-2.0
#include "run/dispatch/stager.hpp"

#include <algorithm>

#include "base/backoff.hpp"
#include "base/error.hpp"
#include "base/futex.hpp"
#include "base/numa.hpp"
#include "run/job/job.hpp"

namespace sg {

namespace {
// Waking a thread whose core sleeps costs its waker some 25 us in a virtual machine (no record is kept), so woken
// threads wake the others.
constexpr int woken_at_once = 2;
// So a few idle threads look for work until the result of a short GEMM, or the operands of the next one, have come.
constexpr std::int64_t polls_for_ns = 200'000;
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
  threads_.emplace_back("sg-staging", [this] {
    run_on(cores_);
    this->work();
  });
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
  has_work_.store(true, std::memory_order_relaxed);
  count -= polling_;
  lock.unlock();  // so that the woken threads need not wait for it
  for (count = std::min(count, woken_at_once); count > 0; --count) changed_.notify_one();
}

inflight_command *stager::take(const job &of) noexcept {
  if (!has_work_.load(std::memory_order_relaxed)) return nullptr;
  const std::lock_guard lock(lock_);
  for (inflight_command **place = &first_; *place; place = &(*place)->next) {
    if ((*place)->owner != &of) continue;
    inflight_command *const taken = *place;
    *place = taken->next;
    if (!first_) has_work_.store(false, std::memory_order_relaxed);
    return taken;
  }
  return nullptr;
}

// Returns at once when there is work, else after a time.
void stager::poll(std::unique_lock<std::mutex> &lock) noexcept {
  ++polling_;
  lock.unlock();
  backoff some;
  for (const deadline end(polls_for_ns); !has_work_.load(std::memory_order_relaxed) && !end.passed();) some.pause();
  lock.lock();
  --polling_;
}

void stager::work() {
  std::unique_lock lock(lock_);
  for (;;) {
    int wakes = 1;
    bool has_polled = false;
    while (!first_ && !closing_) {
      ++idle_;
      if (polling_ < most_polling_ && !has_polled)
        poll(lock), has_polled = true;
      else
        changed_.wait(lock);
      --idle_;
      wakes = woken_at_once;
    }
    if (!first_) return;
    inflight_command &next = *first_;
    first_ = next.next;
    if (!first_) has_work_.store(false, std::memory_order_relaxed);
    if (!first_ || idle_ <= polling_) wakes = 0;
    lock.unlock();
    for (; wakes > 0; --wakes) changed_.notify_one();
    move_(next);
    lock.lock();
  }
}

}  // namespace sg
