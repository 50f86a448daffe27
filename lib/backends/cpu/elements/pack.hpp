// SPDX-License-Identifier: Apache-2.0
// Packing: copies a block of op(X) into a contiguous column-major panel, converted if a kernel needs another type.
#pragma once

#include <streamgemm/types.h>

#include <cstdint>

#include "backends/common/types.hpp"

namespace sg::cpu {

// The rows x cols block of op(X) at (row, col).
struct block {
  const void *x = nullptr;
  sg_dtype type = SG_DTYPE_F32;
  std::int64_t ld = 0;
  sg_transpose op = SG_TRANSPOSE_N;
  std::int64_t row = 0, col = 0, rows = 0, cols = 0;
};

// Into `panel` with leading dimension `rows`. `panel_type` is the block's type, or f32 for f16, bf16 and i8, or f32 or
// bf16 for f8; exact.
void pack(void *panel, sg_dtype panel_type, const block &of) noexcept;

// Converts n elements of C to and from the accumulator's type: a copy, except for f16 and bf16.
void widen(void *sums, const void *c, sg_dtype type, std::int64_t n) noexcept;
void narrow(void *c, sg_dtype type, const void *sums, std::int64_t n) noexcept;

}  // namespace sg::cpu
