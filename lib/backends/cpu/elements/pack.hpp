// SPDX-License-Identifier: Apache-2.0
// Packing: copies a block of op(X) into a contiguous column-major panel, converted if a kernel needs another type.
#pragma once

#include <streamgemm/types.h>

#include <cstdint>

namespace sg::cpu {

constexpr std::int64_t element_size(sg_dtype type) noexcept {
  switch (type) {
    case SG_DTYPE_F64:
    case SG_DTYPE_C64: return 8;
    case SG_DTYPE_F32:
    case SG_DTYPE_I32: return 4;
    case SG_DTYPE_C128: return 16;
    case SG_DTYPE_F16:
    case SG_DTYPE_BF16: return 2;
    case SG_DTYPE_I8:
    case SG_DTYPE_F8_E4M3:
    case SG_DTYPE_F8_E5M2: return 1;
  }
  return 0;
}

constexpr bool is_f8(sg_dtype type) noexcept { return type == SG_DTYPE_F8_E4M3 || type == SG_DTYPE_F8_E5M2; }
constexpr bool is_zero(const sg_scalar &x) noexcept { return x.re == 0 && x.im == 0; }
constexpr bool is_one(const sg_scalar &x) noexcept { return x.re == 1 && x.im == 0; }
constexpr bool is_complex(sg_dtype type) noexcept { return type == SG_DTYPE_C64 || type == SG_DTYPE_C128; }

// The rows x cols block of op(X) at (row, col).
struct block {
  const void *x = nullptr;
  sg_dtype type = SG_DTYPE_F32;
  std::int64_t ld = 0;
  sg_op op = SG_OP_N;
  std::int64_t row = 0, col = 0, rows = 0, cols = 0;
};

// Into `panel` with leading dimension `rows`. `panel_type` is the block's type, or f32 for f16, bf16 and i8, or f32 or
// bf16 for f8; exact.
void pack(void *panel, sg_dtype panel_type, const block &of) noexcept;

// Converts n elements of C to and from the accumulator's type: a copy, except for f16 and bf16.
void widen(void *sums, const void *c, sg_dtype type, std::int64_t n) noexcept;
void narrow(void *c, sg_dtype type, const void *sums, std::int64_t n) noexcept;

// The type that C is accumulated in.
constexpr sg_dtype sum_type_of(sg_dtype out) noexcept {
  return out == SG_DTYPE_F16 || out == SG_DTYPE_BF16 ? SG_DTYPE_F32 : out;
}

}  // namespace sg::cpu
