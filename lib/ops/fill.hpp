// SPDX-License-Identifier: Apache-2.0
// Each element of the result becomes the same bytes: those of the job's alpha are the element, repeated.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct fill {
  enum : std::size_t { y };
  bool operator==(const fill &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_fill> : kind_constant<SG_BACKEND_FILL> {};

}  // namespace sg
