// SPDX-License-Identifier: Apache-2.0
// The operations of the cpu: a table with one entry for each kind of command.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>

#include "backends/cpu/worker/workspace.hpp"

namespace sg::cpu {

struct operation {
  std::size_t size;  // of its command struct
  bool (*supports)(const sg_backend_command &what) noexcept;
  sg_status (*run)(const sg_backend_command &what, workspace &space) noexcept;
};

// Maximum size of a command.
inline constexpr std::size_t most_command_bytes = 320;

// nullptr: unknown kind.
const operation *operation_of(sg_backend_command_kind kind) noexcept;

}  // namespace sg::cpu
