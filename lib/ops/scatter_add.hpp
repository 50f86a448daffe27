// SPDX-License-Identifier: Apache-2.0
// Rows of X added to those of a table by their indices; row major, as in gather.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct scatter_add {
  enum : std::size_t { table, x, indices };
  bool from_end = false;
  bool operator==(const scatter_add &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_scatter_add> : kind_constant<SG_BACKEND_SCATTER_ADD> {};

}  // namespace sg
