// SPDX-License-Identifier: Apache-2.0
// Copies to the device that may go before earlier ones of their lane.
#pragma once

#include <vector>

#include "plan/schedule/schedule.hpp"

namespace sg {

// By command: is it the copy of a packed chunk that no command of the device waits for? Such a copy is bound by its own
// waits only, and goes before the next copy of its lane that is not loose. So the chunk of a host worker who is held up
// holds up the panel that it belongs to, but not the link.
std::vector<bool> out_of_order_copies(const schedule &s);

}  // namespace sg
