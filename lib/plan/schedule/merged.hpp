// SPDX-License-Identifier: Apache-2.0
// Several schedules as one, in the order in which they were appended: for the simulator, which has no arenas.
#pragma once

#include "plan/schedule/schedule.hpp"

namespace sg {

class merged_schedule {
 public:
  static constexpr std::int64_t nothing = -1;
  // Its commands without a wait wait for the command of index `after`. Its kernels are on lane `lane` and those behind
  // it. Returns the index of its last command.
  std::int64_t append(const schedule &next, std::int64_t after, std::uint16_t lane = 0);
  const schedule &whole() const noexcept { return whole_; }

 private:
  schedule whole_;
};

}  // namespace sg
