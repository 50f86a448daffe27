// SPDX-License-Identifier: Apache-2.0
// Dot products of rows: y[i] = the sum over j of a[i][j] * b[i][j]. Y is one row as stored. A and B do not exist if
// they have no columns: Y becomes 0.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct row_dot {
  enum : std::size_t { y, a, b };
  bool by_rows = true;  // a row of A and B is a column as stored
  bool operator==(const row_dot &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_row_dot> : kind_constant<SG_BACKEND_ROW_DOT> {};

}  // namespace sg
