// SPDX-License-Identifier: Apache-2.0
// Held where a fork must not come: while a library underneath may hold a lock of its own, or does something for the
// first time. In the child, which has no thread to go on with it, it would stay so for ever.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace sg::cpu {

// A fork waits for it. Not recursive.
std::mutex &fork_lock() noexcept;

// What a fork does once nothing runs and it holds the lock. To be called with the lock held.
void call_before_each_fork(void (*what)() noexcept) noexcept;

// The same for what many threads do all the time: as long as one of these lives, a fork waits, for a second at most. (A
// product may stand still for as long as its memory is not there.) Not to be had with the lock held.
class fork_waits {
 public:
  fork_waits() noexcept;
  ~fork_waits() { place_.fetch_sub(1, std::memory_order_release); }
  fork_waits(const fork_waits &) = delete;
  fork_waits &operator=(const fork_waits &) = delete;

 private:
  std::atomic<std::int32_t> &place_;
};

}  // namespace sg::cpu
