// SPDX-License-Identifier: Apache-2.0
// The cross entropy of each row, or its gradient, of row-major matrices: a column of a view is a row of the caller's. Y
// and dY are one row as stored; indices are columns of one or two i32.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct cross_entropy {
  enum : std::size_t { result, x, indices, dy };  // dy: of a gradient, or none
  bool is_gradient = false;
  double scale = 1;
  bool operator==(const cross_entropy &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_cross_entropy> : kind_constant<SG_BACKEND_CROSS_ENTROPY> {};

}  // namespace sg
