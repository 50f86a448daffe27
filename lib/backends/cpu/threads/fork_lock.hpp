// SPDX-License-Identifier: Apache-2.0
// Held where a fork must not happen: while a library may hold a lock of its own, or initializes itself. The child,
// which lacks the thread, would keep that state for ever.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace sg::cpu {

// A fork waits for it. Not recursive.
std::mutex &fork_lock() noexcept;

// Sets a function that a fork calls with the lock held once no calls run. Call with the lock held.
void call_before_each_fork(void (*what)() noexcept) noexcept;

// For frequent calls of many threads: while one of these exists, a fork waits, for at most a second. (A GEMM can stall
// for as long as its memory is unavailable.) Must not be constructed with the lock held.
class fork_waits {
 public:
  fork_waits() noexcept;
  ~fork_waits() { slot_.fetch_sub(1, std::memory_order_release); }
  fork_waits(const fork_waits &) = delete;
  fork_waits &operator=(const fork_waits &) = delete;

 private:
  std::atomic<std::int32_t> &slot_;
};

}  // namespace sg::cpu
