// SPDX-License-Identifier: Apache-2.0
// The end of a GEMM or of a reduction: a bias and an activation, applied in the accumulator.
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

// Of a GEMM or a reduction.
ops::epilogue &epilogue_of(command &c);
const ops::epilogue &epilogue_of(const command &c);
// Why the bias, which exists, does not fit the result; nullptr: it fits.
const char *defect_of_bias(const buffer_list &buffers, const view &bias, const view &result);
// Whether it has a value for each row of the result, not one for each column.
bool is_per_row(const view &bias, const view &result) noexcept;

}  // namespace sg
