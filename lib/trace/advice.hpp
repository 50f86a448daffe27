// SPDX-License-Identifier: Apache-2.0
// What to change, and what that would gain.
#pragma once

#include <vector>

#include "trace/history.hpp"
#include "trace/recording.hpp"

namespace sg::trace {

// The largest gain first. What would gain less than 3% of the time of the jobs that it concerns is left out.
std::vector<advice> advice_of(const recording &from, const history &measured);

// Its two parts. Schedules planned again in other ways, on the model of their device; jobs with the same schedule
// together.
std::vector<advice> advice_by_plan(const recording &from, const history &measured);
// What the order of jobs and waits costs: the measured time, less the simulated one of the same jobs in another order.
std::vector<advice> advice_by_pattern(const recording &from, const history &measured);

inline constexpr double min_gain = 0.03;

}  // namespace sg::trace
