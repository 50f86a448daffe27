// SPDX-License-Identifier: Apache-2.0
// A function of the application's, on up to four ranges of bytes.
#pragma once

#include <streamgemm/backend.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

// View i is operand i, of one column of bytes.
struct custom {
  static constexpr std::size_t most_operands = 4;

  // Calls the function; see sg_backend_custom. A reason that it gives for a failure is written to `message`.
  sg_status (*call)(const custom &what, void *native_stream, void *const *operands, std::int32_t operand_count,
                    char *message) = nullptr;
  void (*function)() = nullptr;  // the application's, as `call` knows it
  void *user = nullptr;
  double expected_seconds = 0;     // 0: by its bytes
  std::int32_t compute_units = 0;  // 0: all; -1: none
  std::array<access_mode, most_operands> modes{};
  bool operator==(const custom &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_custom> : kind_constant<SG_BACKEND_CUSTOM> {};

}  // namespace sg
