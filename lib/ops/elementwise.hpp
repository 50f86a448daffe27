// SPDX-License-Identifier: Apache-2.0
// Functions of elements: c = function(a) or function(a, b). C may be A or B itself.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <string>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

constexpr bool takes_two(sg_function function) noexcept { return function >= SG_FUNCTION_ADD; }

const char *name_of(sg_function function);  // "relu", "gelu erf", ...

struct elementwise {
  enum : std::size_t { c, a, b };
  sg_function function = SG_FUNCTION_RELU;
  bool operator==(const elementwise &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_elementwise> : kind_constant<SG_BACKEND_ELEMENTWISE> {};

}  // namespace sg
