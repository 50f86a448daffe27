// SPDX-License-Identifier: Apache-2.0
// Copies to the device that may overtake earlier ones of their lane.
#pragma once

#include <vector>

#include "plan/schedule/schedule.hpp"

namespace sg {

// For each command: whether it is the copy of a packed chunk without dependents on the device. Such a copy is ordered
// by its own waits only, and precedes the next ordered copy of its lane. So a delayed host worker delays the panel of
// its chunk, but not the link.
std::vector<bool> out_of_order_copies(const schedule &s);

}  // namespace sg
