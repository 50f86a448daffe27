// SPDX-License-Identifier: Apache-2.0
// C = op(A), cast to C's type, for each item. C may be A itself if no element moves. The columns of C may have
// divisors: a column of f32, one item's after the other's.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct convert {
  enum : std::size_t { c, a, divisors };
  sg_transpose op = SG_TRANSPOSE_N;  // N or T, of the views
  bool operator==(const convert &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_convert> : kind_constant<SG_BACKEND_CONVERT> {};

}  // namespace sg
