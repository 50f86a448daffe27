// SPDX-License-Identifier: Apache-2.0
// Epilogue of a GEMM or a reduction: bias and activation, applied to the accumulator.
#pragma once

#include <streamgemm/types.h>

#include <cstddef>

#include "ops/view.hpp"

namespace sg {

struct command;

namespace ops {

struct epilogue {
  enum : std::size_t { bias = 3 };  // the view: rows x 1 or 1 x cols of the result
  sg_activation activation = SG_ACTIVATION_NONE;
};

}  // namespace ops

// For a GEMM or a reduction.
ops::epilogue &epilogue_of(command &c);
const ops::epilogue &epilogue_of(const command &c);
// The defect of an existing bias for that result; nullptr: none.
const char *defect_of_bias(const buffer_list &buffers, const view &bias, const view &result);
// Whether it has a value for each row of the result; otherwise for each column.
bool is_per_row(const view &bias, const view &result) noexcept;

}  // namespace sg
