// SPDX-License-Identifier: Apache-2.0
// The gradient of a softmax, row by row: dx = y * (dy - the sum of y * dy). Views as in softmax with by_rows. dx may be
// y, or dy of the same type.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct softmax_backward {
  enum : std::size_t { dx, y, dy };  // dy may have the accumulator's type
  bool operator==(const softmax_backward &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_softmax_backward> : kind_constant<SG_BACKEND_SOFTMAX_BACKWARD> {};

}  // namespace sg
