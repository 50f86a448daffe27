// SPDX-License-Identifier: Apache-2.0
// A step of an optimizer on vectors. What changes from step to step is among the scalars: alpha is the rate, and of
// Adam beta has the corrections 1 - beta1^t and 1 - beta2^t.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct optimizer {
  enum : std::size_t { parameters, gradient, first, second };  // first: none of SGD without a momentum; second: of Adam
  bool is_adam = false, nesterov = false, decoupled = false;
  double beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;  // beta1 of SGD: the momentum
  bool operator==(const optimizer &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_optimizer> : kind_constant<SG_BACKEND_OPTIMIZER> {};

}  // namespace sg
