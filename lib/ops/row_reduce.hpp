// SPDX-License-Identifier: Apache-2.0
// The sum, mean, maximum or minimum of each row. Y is one row as stored. X does not exist if it has no columns.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct row_reduce {
  enum : std::size_t { y, x };
  bool by_rows = true;  // a row of X is a column as stored
  sg_reduction reduction = SG_REDUCTION_SUM;
  bool operator==(const row_reduce &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_row_reduce> : kind_constant<SG_BACKEND_ROW_REDUCE> {};

}  // namespace sg
