// SPDX-License-Identifier: Apache-2.0
// A product with a symmetric or Hermitian matrix, c = alpha * a * b + beta * c, or an update of a triangle of one, c =
// alpha * op(a) * op(a)' + beta * c, with b the sum of both products. Without a and b, c is scaled.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct symmetric {
  enum : std::size_t { c, a, b };
  sg_backend_symmetric_kind kind = SG_BACKEND_SYMMETRIC_MULTIPLY;
  sg_symmetry symmetry = SG_SYMMETRY_SYMMETRIC;
  sg_triangle triangle = SG_TRIANGLE_LOWER;
  sg_side side = SG_SIDE_LEFT;       // of a product
  sg_transpose op = SG_TRANSPOSE_N;  // of an update
  scalar_role alpha = scalar_role::job, beta = scalar_role::job;
  bool operator==(const symmetric &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_symmetric> : kind_constant<SG_BACKEND_SYMMETRIC> {};

}  // namespace sg
