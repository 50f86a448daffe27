// SPDX-License-Identifier: Apache-2.0
// Properties of element types.
#pragma once

#include <streamgemm/types.h>

#include <cstdint>

namespace sg {

constexpr bool is_dtype(int value) noexcept { return value >= SG_DTYPE_F64 && value <= SG_DTYPE_F8_E5M2; }

// Bytes of an element; 0 for an invalid type.
constexpr std::int64_t size_of(sg_dtype type) noexcept {
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

constexpr bool is_complex(sg_dtype type) noexcept { return type == SG_DTYPE_C64 || type == SG_DTYPE_C128; }

constexpr bool is_f8(sg_dtype type) noexcept { return type == SG_DTYPE_F8_E4M3 || type == SG_DTYPE_F8_E5M2; }

// The type of sums, and of the partial results of a split over K.
constexpr sg_dtype accumulator_of(sg_dtype out_type) noexcept {
  return out_type == SG_DTYPE_F16 || out_type == SG_DTYPE_BF16 ? SG_DTYPE_F32 : out_type;
}

// Whether there is a GEMM of two `in` matrices with a result of type `out`.
constexpr bool is_gemm_type(sg_dtype in, sg_dtype out) noexcept {
  if (in == SG_DTYPE_I8) return out == SG_DTYPE_I32;
  if (in == SG_DTYPE_F16 || in == SG_DTYPE_BF16) return out == in || out == SG_DTYPE_F32;
  if (is_f8(in)) return out == SG_DTYPE_F32 || out == SG_DTYPE_F16 || out == SG_DTYPE_BF16;
  return in == out && in != SG_DTYPE_I32;
}

// Whether this compute type is valid for GEMMs of `in` matrices.
constexpr bool is_compute_of(sg_dtype in, sg_compute compute) noexcept {
  return compute == SG_COMPUTE_EXACT || (compute == SG_COMPUTE_F8 ? is_f8(in) : in == SG_DTYPE_F32);
}

// Floating-point (or integer) operations of one multiply-add: a complex one counts as four real ones.
constexpr double flops_per_mac(sg_dtype in) noexcept { return is_complex(in) ? 8.0 : 2.0; }

const char *name_of(sg_dtype type) noexcept;
const char *name_of(sg_transpose op) noexcept;
const char *name_of(sg_layout layout) noexcept;
const char *name_of(sg_compute compute) noexcept;
const char *name_of(sg_memory_kind kind) noexcept;

}  // namespace sg
