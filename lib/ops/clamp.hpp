// SPDX-License-Identifier: Apache-2.0
// Elements between two limits: y = min(max(x, low), high), or with dy its gradient: dy where low <= x <= high, else 0.
// The limits are the job's alpha.re and alpha.im. Y may be X or dY itself.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct clamp {
  enum : std::size_t { y, x, dy };
  bool operator==(const clamp &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_clamp> : kind_constant<SG_BACKEND_CLAMP> {};

}  // namespace sg
