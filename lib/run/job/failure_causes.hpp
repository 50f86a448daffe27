// SPDX-License-Identifier: Apache-2.0
// The causes of one job's failure, present or coming: failures in unobserved_failures. Most jobs have none, and most
// failed ones have one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

namespace sg {

// Any thread, except for clear().
class failure_causes {
 public:
  bool none() const noexcept { return first() == 0; }
  std::uint64_t first() const noexcept { return first_.load(std::memory_order_relaxed); }
  // 0: an unknown cause, which is not kept. Out of memory: a second one is not kept.
  void add(std::uint64_t cause) noexcept {
    std::uint64_t present = 0;
    if (cause == 0 || first_.compare_exchange_strong(present, cause, std::memory_order_relaxed) || present == cause)
      return;
    const std::lock_guard lock(s_lock);
    try {
      if (std::find(more_.begin(), more_.end(), cause) == more_.end()) more_.push_back(cause);
    } catch (const std::bad_alloc &) {
    }
  }
  void add(const failure_causes &others) noexcept {
    others.for_each([this](std::uint64_t cause) { add(cause); });
  }
  template <class Each>
  void for_each(Each &&each) const {
    if (none()) return;
    each(first());
    std::vector<std::uint64_t> more;
    try {
      const std::lock_guard lock(s_lock);
      more = more_;
    } catch (const std::bad_alloc &) {
      return;
    }
    for (const std::uint64_t cause : more) each(cause);
  }
  void clear() noexcept {
    if (none()) return;
    first_.store(0, std::memory_order_relaxed);
    more_.clear();
  }

 private:
  inline static std::mutex s_lock;  // of every object's more_: failures are rare
  std::atomic<std::uint64_t> first_{0};
  std::vector<std::uint64_t> more_;
};

}  // namespace sg
