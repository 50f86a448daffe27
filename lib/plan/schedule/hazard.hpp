// SPDX-License-Identifier: Apache-2.0
// Proves a schedule free of races: any two commands that access overlapping regions, one of them writing, are ordered
// by their waits, or by an ordered lane. Also finds malformed commands: waits that point forwards, views that leave
// their buffer.
#pragma once

#include <string>
#include <vector>

#include "plan/schedule/schedule.hpp"

namespace sg {

struct hazard {
  std::uint32_t first = 0, second = 0;  // indices of commands; equal if one command is malformed
  std::string text;
};

// Empty: the schedule is sound. Rectangles of one leading dimension are compared exactly, others by their byte ranges.
std::vector<hazard> check_hazards(const schedule &s);
// Throws SG_STATUS_INTERNAL if there is one.
void require_no_hazards(const schedule &s);

}  // namespace sg
