// SPDX-License-Identifier: Apache-2.0
// The commands beside markers, copies, GEMMs and reductions.
#pragma once

#include <streamgemm/backend.h>

#include <functional>

#include "address_space.hpp"
#include "backends/common/operation.hpp"

namespace sg::sim {

// Makes the command's task, with its operands resolved in the device's memory. Throws if they are not there.
using operation =
    operation_entry<std::function<void()>(const address_space &memory, const sg_backend_command &command)>;

const operation *operation_of(sg_backend_command_kind kind) noexcept;  // NULL: there is none

}  // namespace sg::sim
