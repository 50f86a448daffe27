// SPDX-License-Identifier: Apache-2.0
// What a device of several has been given and not completed, by which the next job is placed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace sg {

class device_load {
 public:
  // A job that is predicted to take so long has been placed there.
  void add(std::int64_t now_ns, std::int64_t predicted_ns) noexcept {
    jobs_.fetch_add(1, std::memory_order_relaxed);
    std::int64_t known = end_ns_.load(std::memory_order_relaxed);
    while (!end_ns_.compare_exchange_weak(known, std::max(known, now_ns) + predicted_ns, std::memory_order_relaxed)) {
    }
  }
  // One of them has completed. Behind the last, what was predicted beyond now counts no more.
  void remove() noexcept {
    std::int64_t known = end_ns_.load(std::memory_order_relaxed);  // unless another is placed meanwhile
    if (jobs_.fetch_sub(1, std::memory_order_relaxed) == 1)
      end_ns_.compare_exchange_strong(known, 0, std::memory_order_relaxed);
  }
  // When all that was placed there is expected to have completed; not before now.
  std::int64_t end_ns(std::int64_t now_ns) const noexcept {
    return std::max(now_ns, end_ns_.load(std::memory_order_relaxed));
  }

 private:
  std::atomic<std::int64_t> jobs_{0}, end_ns_{0};
};

}  // namespace sg
