// SPDX-License-Identifier: Apache-2.0
// Rows of a table by their indices. The views are those of row-major matrices: a column is a row of the caller's.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct gather {
  // indices: of i32, a column for each, of one or, for i64, two elements.
  enum : std::size_t { y, table, indices };
  bool from_end = false;   // negative indices count from the table's end
  std::uint64_t fill = 0;  // the bytes, repeated, of a row whose index is out of range
  bool operator==(const gather &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_gather> : kind_constant<SG_BACKEND_GATHER> {};

}  // namespace sg
