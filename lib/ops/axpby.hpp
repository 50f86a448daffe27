// SPDX-License-Identifier: Apache-2.0
// Scale and add: c = activation(alpha * a + beta * c), element by element. Without a, c is scaled.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct axpby {
  enum : std::size_t { c, a };
  scalar_role alpha = scalar_role::job, beta = scalar_role::job;
  sg_activation activation = SG_ACTIVATION_NONE;
  bool operator==(const axpby &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_axpby> : kind_constant<SG_BACKEND_AXPBY> {};

}  // namespace sg
