// SPDX-License-Identifier: Apache-2.0
// One step of a recurrent cell: sg_backend_cell describes it.
#pragma once

#include <streamgemm/backend.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

// Blocks of a row: four of gates and the state.
inline constexpr std::int64_t blocks_of_gates = 4, blocks_of_row = 5;

// The block of each gate in a row, whose gates are in the order of the weights. That of a GRU begins with n without the
// state's part, which the weights have not.
std::array<std::int32_t, 4> gate_blocks(sg_cell cell, sg_gate_order order) noexcept;

namespace ops {

struct cell {
  enum : std::size_t { row, y, next };  // next may be missing
  sg_cell kind = SG_CELL_LSTM;
  sg_backend_cell_step step = SG_BACKEND_CELL_WHOLE;
  sg_gate_order order = SG_GATE_ORDER_DEFAULT;
  bool keeps = false;
  bool operator==(const cell &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_cell> : kind_constant<SG_BACKEND_CELL> {};

}  // namespace sg
