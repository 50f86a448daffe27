// SPDX-License-Identifier: Apache-2.0
// The dependents of each command of a schedule.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/schedule/schedule.hpp"

namespace sg {

class dependents {
 public:
  explicit dependents(const schedule &s) : first_(s.commands.size() + 1, 0) {
    for_waits(s, [&](std::uint32_t before, std::uint32_t) { ++first_[before + 1]; });
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    all_.resize(first_.back());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for_waits(s, [&](std::uint32_t before, std::uint32_t command) { all_[next[before]++] = command; });
  }

  std::span<const std::uint32_t> of(std::uint32_t command) const noexcept {
    return {all_.data() + first_[command], all_.data() + first_[command + 1]};
  }

 private:
  template <class Wait>
  static void for_waits(const schedule &s, Wait &&wait) {
    for (std::uint32_t i = 0; i < s.commands.size(); ++i) {
      const command &c = s.commands[i];
      for (std::uint32_t w = c.first_wait; w < c.first_wait + c.waits; ++w) wait(s.waits[w], i);
    }
  }

  std::vector<std::uint32_t> first_, all_;
};

}  // namespace sg
