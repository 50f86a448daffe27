// SPDX-License-Identifier: Apache-2.0
// Proves a schedule free of races: any two commands that touch overlapping regions, one of them writing, are ordered by
// their waits, and by their lanes where these are in order. Also finds what is wrong in its form: waits that point
// forwards, views that leave their buffer.
#pragma once

#include <string>
#include <vector>

#include "plan/schedule/schedule.hpp"

namespace sg {

struct hazard {
  std::uint32_t first = 0, second = 0;  // indices of commands; equal when the form of one command is wrong
  std::string text;
};

// Empty: the schedule is sound. Rectangles of one leading dimension are compared exactly, others by their byte ranges.
std::vector<hazard> check_hazards(const schedule &s);
// Throws SG_STATUS_INTERNAL where there is one.
void require_no_hazards(const schedule &s);

}  // namespace sg
