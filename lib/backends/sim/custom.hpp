// SPDX-License-Identifier: Apache-2.0
// Functions of the application's: they get the addresses of the stored bytes.
#pragma once

#include <streamgemm/backend.h>

#include <array>
#include <cstddef>
#include <functional>
#include <iterator>

#include "address_space.hpp"
#include "failure.hpp"

namespace sg::sim {

inline std::function<void()> work_of(const address_space &memory, const sg_backend_custom &what) {
  std::array<void *, std::size(sg_backend_custom{}.operands)> at{};
  for (std::int32_t i = 0; i < what.operand_count; ++i) {
    const void *const operand = what.operands[i];
    const bool on_device = memory.kind_of(operand, 1) == SG_MEMORY_DEVICE;
    constexpr const char *name = "an operand of a custom operation";
    at[static_cast<std::size_t>(i)] =
        on_device ? memory.device_bytes(operand, what.bytes[i], name) : memory.host_bytes(operand, what.bytes[i], name);
  }
  return [what, at] {
    char message[SG_BACKEND_MESSAGE_SIZE] = "";
    const sg_status status = what.run(what.what, nullptr, at.data(), what.operand_count, message);
    if (status != SG_STATUS_OK) throw failure(status, "%s", message);
  };
}

}  // namespace sg::sim
