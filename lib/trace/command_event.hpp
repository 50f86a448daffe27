// SPDX-License-Identifier: Apache-2.0
// What an event says of a command of a schedule.
#pragma once

#include <cstdint>

#include "ops/command.hpp"
#include "trace/event.hpp"

namespace sg::trace {

// Sets operation, lane kind, sizes and bytes.
void describe_command(event_body &out, const buffer_list &buffers, const command &c);
// The same of a copy that is a job by itself.
void describe_copy(event_body &out, bool to_device, bool from_device, std::uint64_t bytes) noexcept;

}  // namespace sg::trace
