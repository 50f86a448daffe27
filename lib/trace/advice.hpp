// SPDX-License-Identifier: Apache-2.0
// What to change, and what that would gain: the recorded problems planned again in other ways, on the model of their
// device.
#pragma once

#include <vector>

#include "trace/history.hpp"
#include "trace/recording.hpp"

namespace sg::trace {

// Of the jobs whose schedules were recorded, those with the same schedule together; the largest gain first. What would
// gain less than 3% of the jobs' predicted time is left out.
std::vector<advice> advice_of(const recording &from, const history &measured);

}  // namespace sg::trace
