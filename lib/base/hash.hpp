// SPDX-License-Identifier: Apache-2.0
// A hash of several numbers.
#pragma once

#include <cstdint>

namespace sg {

class hasher {
 public:
  hasher &operator<<(std::int64_t value) noexcept {
    state_ = (state_ ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15ull;
    state_ ^= state_ >> 29;
    return *this;
  }
  std::uint64_t value() const noexcept { return state_; }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace sg
