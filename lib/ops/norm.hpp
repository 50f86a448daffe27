// SPDX-License-Identifier: Apache-2.0
// Layer norm or RMS norm of each row of the caller's matrix. Y may be X itself.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct norm {
  enum : std::size_t { y, x, gamma, beta };  // gamma and beta: one column of a value for each column of the caller's
  bool by_rows = true;                       // as in softmax
  sg_norm_kind kind = SG_NORM_LAYER;
  double epsilon = 0;
  bool operator==(const norm &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_norm> : kind_constant<SG_BACKEND_NORM> {};

}  // namespace sg
