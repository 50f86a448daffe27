// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "workspace.hpp"

namespace sg::cpu {

// Polls whether the command is to stop, once in many elements.
class poll {
 public:
  explicit poll(const workspace &space) noexcept : space_(space) {}
  bool stops(std::int64_t elements) noexcept {
    if ((elements_ += elements) < between_polls) return false;
    elements_ = 0;
    return space_.is_stopped();
  }

 private:
  static constexpr std::int64_t between_polls = 1 << 20;
  const workspace &space_;
  std::int64_t elements_ = 0;
};

}  // namespace sg::cpu
