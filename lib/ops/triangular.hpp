// SPDX-License-Identifier: Apache-2.0
// A triangular solve or product in place: b = the x of op(a) * x = alpha * b, or alpha * op(a) * b, or with op(a) on
// the right. Without a, b becomes zero.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct triangular {
  enum : std::size_t { b, a };
  sg_triangular_kind kind = SG_TRIANGULAR_SOLVE;
  sg_side side = SG_SIDE_LEFT;
  sg_triangle triangle = SG_TRIANGLE_LOWER;
  sg_transpose op = SG_TRANSPOSE_N;
  sg_diagonal diagonal = SG_DIAGONAL_STORED;
  scalar_role alpha = scalar_role::job;
  bool operator==(const triangular &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_triangular> : kind_constant<SG_BACKEND_TRIANGULAR> {};

}  // namespace sg
