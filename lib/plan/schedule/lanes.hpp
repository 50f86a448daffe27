// SPDX-License-Identifier: Apache-2.0
// Numbers the lanes of a schedule: each command's lane as one small integer.
#pragma once

#include <algorithm>
#include <vector>

#include "plan/schedule/schedule.hpp"

namespace sg {

class lane_numbers {
 public:
  explicit lane_numbers(const schedule &s) : lane_numbers(s.commands) {}
  // Of whatever has a lane, its member `where`.
  template <class Placed>
  explicit lane_numbers(const std::vector<Placed> &all) {
    int width[lane_kinds] = {0, 0, 0, 0};
    for (const Placed &x : all) {
      int &w = width[int(x.where.kind)];
      w = std::max(w, x.where.index + 1);
    }
    for (int kind = 0; kind < lane_kinds; ++kind) first_[kind + 1] = first_[kind] + width[kind];
  }

  int count() const noexcept { return first_[lane_kinds]; }
  int of(lane where) const noexcept { return first_[int(where.kind)] + where.index; }
  lane at(int number) const noexcept {
    int kind = 0;
    while (number >= first_[kind + 1]) ++kind;
    return {lane_kind(kind), std::uint16_t(number - first_[kind])};
  }

 private:
  int first_[lane_kinds + 1] = {0, 0, 0, 0, 0};
};

}  // namespace sg
