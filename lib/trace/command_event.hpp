// SPDX-License-Identifier: Apache-2.0
// What an event says of a command of a schedule.
#pragma once

#include <cstdint>

#include "ops/command.hpp"
#include "trace/event.hpp"

namespace sg::trace {

// Sets operation, lane kind, sizes and bytes.
void describe_command(event_body &out, const buffer_list &buffers, const command &c);

}  // namespace sg::trace
