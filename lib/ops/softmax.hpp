// SPDX-License-Identifier: Apache-2.0
// The softmax of each row of the caller's matrix. Y may be X itself. With `sums`, a column of f32, rows are not divided
// by the sums of their exponentials, which are stored there as the rounded elements have them.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct softmax {
  enum : std::size_t { y, x, sums };
  bool by_rows = true;  // the caller's matrix is row major: its rows are the columns of the views
  sg_mask mask = SG_MASK_NONE;
  std::int64_t mask_offset = 0;
  std::int64_t mask_row = 0;   // number of the view's first row
  std::int64_t mask_rows = 0;  // rows of each matrix of a stack, where numbers begin at 0 again; 0: one matrix
  void begin_at(std::int64_t row) noexcept { mask_row += row; }  // of a part
  bool operator==(const softmax &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_softmax> : kind_constant<SG_BACKEND_SOFTMAX> {};

}  // namespace sg
