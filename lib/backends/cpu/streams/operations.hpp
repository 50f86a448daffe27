// SPDX-License-Identifier: Apache-2.0
// The operations of the cpu.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>

#include "backends/common/operation.hpp"
#include "backends/cpu/worker/workspace.hpp"

namespace sg::cpu {

// Computes the command on this thread.
using operation = operation_entry<sg_status(const sg_backend_command &what, workspace &space) noexcept>;

// Maximum size of a command.
inline constexpr std::size_t most_command_bytes = 320;

// nullptr: unknown kind.
const operation *operation_of(sg_backend_command_kind kind) noexcept;

}  // namespace sg::cpu
