// SPDX-License-Identifier: Apache-2.0
// Rotary embedding of row-major matrices: a column of a view is a row of the caller's. Y may be X itself.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct rotary {
  enum : std::size_t { y, x, cos, sin };  // the tables: both or neither
  std::int64_t head_size = 2, rotated_size = 2;
  std::int64_t first_position = 0, sequence_length = 1;
  std::int64_t first_row = 0;  // of the view, in the caller's matrix
  double theta = 1;
  sg_rotary_pairs pairs = SG_ROTARY_HALVES;
  std::int32_t inverse = 0;
  void begin_at(std::int64_t row) noexcept { first_row += row; }  // of a part
  bool operator==(const rotary &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_rotary> : kind_constant<SG_BACKEND_ROTARY> {};

}  // namespace sg
