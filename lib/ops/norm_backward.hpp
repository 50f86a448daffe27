// SPDX-License-Identifier: Apache-2.0
// The gradient of a norm of each row, of row-major matrices: a column of a view is a row of the caller's. The products
// of dY and the normalized X, of the accumulator's type, are summed for gamma's gradient.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct norm_backward {
  enum : std::size_t { dx, dy, x, gamma, products, dy_sums };
  sg_norm_kind kind = SG_NORM_LAYER;
  double epsilon = 0;
  std::int64_t group_rows = 1;  // whose products, and rows of dY, are added
  bool operator==(const norm_backward &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_norm_backward> : kind_constant<SG_BACKEND_NORM_BACKWARD> {};

}  // namespace sg
