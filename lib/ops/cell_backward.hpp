// SPDX-License-Identifier: Apache-2.0
// The gradients of one step of a recurrent cell: sg_backend_cell_backward describes it.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct cell_backward {
  enum : std::size_t { dgates, row, dh, dstate };  // a GRU may have no dstate
  sg_cell kind = SG_CELL_LSTM;
  sg_gate_order order = SG_GATE_ORDER_DEFAULT;
  bool operator==(const cell_backward &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_cell_backward> : kind_constant<SG_BACKEND_CELL_BACKWARD> {};

}  // namespace sg
