// SPDX-License-Identifier: Apache-2.0
// The commands beside markers, copies, GEMMs and reductions: one table entry each.
#pragma once

#include <streamgemm/backend.h>

#include <functional>

#include "address_space.hpp"

namespace sg::sim {

struct operation {
  const char *name;  // in messages
  bool (*supports)(const sg_backend_command &command) noexcept;
  // The command's task, with its operands resolved in the device's memory. Throws if they are not there.
  std::function<void()> (*work)(const address_space &memory, const sg_backend_command &command);
};

const operation *operation_of(sg_backend_command_kind kind) noexcept;  // NULL: there is none

}  // namespace sg::sim
