// SPDX-License-Identifier: Apache-2.0
// The progress of a stream. Events and waits of other streams are positions in it: both hold a reference, so a stream
// may be destroyed before them.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>

#include "futex.hpp"

namespace sg::cpu {

class progress {
 public:
  // With one reference for the caller; NULL: out of memory.
  static progress *create() noexcept { return new (std::nothrow) progress; }

  progress *retain() noexcept {
    refs_.fetch_add(1, std::memory_order_relaxed);
    return this;
  }
  void release() noexcept {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  std::uint64_t completed() const noexcept { return completed_.load(std::memory_order_acquire); }

  // Called by one thread at a time, which runs the stream's commands. The store and the load are sequentially
  // consistent, as are those of wait_for: either the worker sees the waiter or the waiter sees the new count.
  void advance() noexcept {
    completed_.store(completed_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
    if (waiters_.load(std::memory_order_seq_cst) == 0) return;
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    futex_wake_all(epoch_);
  }

  // Sleeps until `count` commands of the stream have completed.
  void wait_for(std::uint64_t count) noexcept {
    if (completed() >= count) return;
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    for (;;) {
      const std::uint32_t epoch = epoch_.load(std::memory_order_seq_cst);
      if (completed_.load(std::memory_order_seq_cst) >= count) break;
      futex_wait(epoch_, epoch);
    }
    waiters_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  progress() = default;
  ~progress() = default;

  std::atomic<std::uint32_t> refs_{1};
  std::atomic<std::uint32_t> waiters_{0};
  std::atomic<std::uint32_t> epoch_{0};
  std::atomic<std::uint64_t> completed_{0};
};

}  // namespace sg::cpu
