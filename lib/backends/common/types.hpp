// SPDX-License-Identifier: Apache-2.0
// Element types and scalars. The inline namespace of this folder: backends name its functions without a prefix, and
// their symbols differ from those of the library.
#pragma once

#include <streamgemm/types.h>

#include <cstdint>

namespace sg {
inline namespace common {

// Bytes of an element.
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

constexpr bool is_complex(sg_dtype type) noexcept { return type == SG_DTYPE_C64 || type == SG_DTYPE_C128; }
constexpr bool is_f8(sg_dtype type) noexcept { return type == SG_DTYPE_F8_E4M3 || type == SG_DTYPE_F8_E5M2; }
// Of 16 bits.
constexpr bool is_short_float(sg_dtype type) noexcept { return type == SG_DTYPE_F16 || type == SG_DTYPE_BF16; }
// A type of results; the others are only read.
constexpr bool is_result_type(sg_dtype type) noexcept { return type != SG_DTYPE_I8 && !is_f8(type); }
// A type of the operations of layers.h.
constexpr bool is_layer_type(sg_dtype type) noexcept {
  return type == SG_DTYPE_F64 || type == SG_DTYPE_F32 || is_short_float(type);
}
// A type of BLAS's own routines.
constexpr bool is_blas_type(sg_dtype type) noexcept {
  return type == SG_DTYPE_F64 || type == SG_DTYPE_F32 || is_complex(type);
}

// Bytes of an element, or of one of the two parts of a complex one.
constexpr std::int64_t component_size(sg_dtype type) noexcept {
  return is_complex(type) ? element_size(type) / 2 : element_size(type);
}

// The type that results are accumulated in.
constexpr sg_dtype sum_type_of(sg_dtype out) noexcept { return is_short_float(out) ? SG_DTYPE_F32 : out; }

// Whether there is a GEMM of two `in` matrices with a result of type `out`.
constexpr bool is_gemm_type(sg_dtype in, sg_dtype out) noexcept {
  if (in == SG_DTYPE_I8) return out == SG_DTYPE_I32;
  if (is_short_float(in)) return out == in || out == SG_DTYPE_F32;
  if (is_f8(in)) return out == SG_DTYPE_F32 || is_short_float(out);
  return in == out && in != SG_DTYPE_I32;
}

// Whether parts of type `part` can be added into results of type `out`.
constexpr bool is_part_type(sg_dtype part, sg_dtype out) noexcept {
  return is_result_type(out) && (part == sum_type_of(out) || (is_short_float(part) && out == SG_DTYPE_F32));
}

constexpr bool is_zero(const sg_scalar &x) noexcept { return x.re == 0 && x.im == 0; }
constexpr bool is_one(const sg_scalar &x) noexcept { return x.re == 1 && x.im == 0; }

}  // namespace common
}  // namespace sg
