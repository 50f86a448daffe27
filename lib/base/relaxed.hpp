// SPDX-License-Identifier: Apache-2.0
// A value that other threads may read while it changes, and to whom any of its values is right.
#pragma once

#include <atomic>

namespace sg {

template <class T>
class relaxed {
 public:
  operator T() const noexcept { return at_.load(std::memory_order_relaxed); }
  relaxed &operator=(T to) noexcept {
    at_.store(to, std::memory_order_relaxed);
    return *this;
  }
  relaxed &operator=(const relaxed &other) noexcept { return *this = T(other); }

 private:
  std::atomic<T> at_{};
};

}  // namespace sg
