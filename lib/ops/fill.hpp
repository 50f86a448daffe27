// SPDX-License-Identifier: Apache-2.0
// Each element of the result becomes the same bytes.
#pragma once

#include <streamgemm/backend.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct fill {
  enum : std::size_t { y };
  std::array<std::uint64_t, 2> pattern{};  // the element, repeated
  bool operator==(const fill &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_fill> : kind_constant<SG_BACKEND_FILL> {};

}  // namespace sg
