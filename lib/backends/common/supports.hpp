// SPDX-License-Identifier: Apache-2.0
// The types and options of each command that the kernels of every backend support. A backend may have further
// conditions: a library, a chip.
#pragma once

#include <streamgemm/backend.h>

#include "backends/common/types.hpp"

namespace sg {
inline namespace common {

// Commands on elements of one type, where no other rule is here. Of a convolution a library that the backend loads
// decides, too.
template <class Command>
constexpr bool is_supported(const Command &what) noexcept {
  return is_layer_type(what.type);
}

constexpr bool is_supported(const sg_backend_command &) noexcept { return true; }  // a marker
constexpr bool is_supported(const sg_backend_copy &) noexcept { return true; }
constexpr bool is_supported(const sg_backend_gather &) noexcept { return true; }
constexpr bool is_supported(const sg_backend_fill &) noexcept { return true; }
constexpr bool is_supported(const sg_backend_custom &) noexcept { return true; }

constexpr bool is_supported(const sg_backend_gemm &what) noexcept { return is_gemm_type(what.in_type, what.out_type); }

constexpr bool is_supported(const sg_backend_reduce &what) noexcept {
  return is_result_type(what.out_type) && (what.parts_count == 0 || is_part_type(what.part_type, what.out_type));
}

constexpr bool is_supported(const sg_backend_axpby &what) noexcept { return is_result_type(what.type); }

constexpr bool is_supported(const sg_backend_triangular &what) noexcept { return is_blas_type(what.type); }
constexpr bool is_supported(const sg_backend_symmetric &what) noexcept { return is_blas_type(what.type); }

constexpr bool is_supported(const sg_backend_softmax &what) noexcept {
  const bool rounds = what.x_type == SG_DTYPE_F32 && is_short_float(what.type);
  return is_layer_type(what.type) && (what.x_type == 0 ? what.sums == nullptr : rounds);
}

constexpr bool is_supported(const sg_backend_softmax_backward &what) noexcept {
  const bool is_wide = what.dy_type == SG_DTYPE_F32 && what.type != SG_DTYPE_F64;
  return is_layer_type(what.type) && (what.dy_type == what.type || is_wide);
}

constexpr bool is_supported(const sg_backend_dequantize &what) noexcept {
  const bool is_known = what.quantization == SG_QUANTIZATION_I8 || what.quantization == SG_QUANTIZATION_I4;
  const auto has_f32_sums = [](sg_dtype type) { return sum_type_of(type) == SG_DTYPE_F32; };
  return is_known && has_f32_sums(what.type) && has_f32_sums(what.scale_type);
}

constexpr bool is_supported(const sg_backend_rotary &what) noexcept {
  const bool is_known = what.pairs == SG_ROTARY_HALVES || what.pairs == SG_ROTARY_INTERLEAVED;
  const bool is_wide = what.table_type == SG_DTYPE_F32 && what.type != SG_DTYPE_F64;
  return is_known && is_layer_type(what.type) && (what.table_type == what.type || is_wide);
}

constexpr bool is_supported(const sg_backend_convert &what) noexcept {
  const bool divides = what.divisors == nullptr || (what.in_type == SG_DTYPE_F32 && what.op == SG_TRANSPOSE_N);
  return is_layer_type(what.in_type) && is_layer_type(what.out_type) && divides;
}

constexpr bool is_supported(const sg_backend_im2col &what) noexcept {
  return what.element_bytes > 0 && what.element_bytes <= 16 && (what.element_bytes & (what.element_bytes - 1)) == 0;
}

constexpr bool is_supported(const sg_backend_col2im &what) noexcept {
  return is_layer_type(what.type) && (what.matrix_type == what.type || what.matrix_type == sum_type_of(what.type));
}

constexpr bool is_supported(const sg_backend_score_mask &what) noexcept {
  const bool is_wide = what.type == SG_DTYPE_F64 || what.type == SG_DTYPE_F32;
  return is_wide && is_layer_type(what.bias_type) && sum_type_of(what.bias_type) == what.type;
}

constexpr bool is_supported(const sg_backend_attention &what) noexcept {
  const auto fits = [](std::int64_t width) { return width > 0 && width <= 128; };
  return is_short_float(what.type) && fits(what.width) && fits(what.value_width);
}
// Whether it is faster than GEMMs: a block has many queries of a head, and with few queries and heads the
// multiprocessors are idle, or compute what is not wanted.
constexpr bool suits_kernel(const sg_backend_attention &what, std::int32_t multiprocessors) noexcept {
  constexpr std::int64_t enough_queries = 16;
  return is_supported(what) && (what.queries >= enough_queries || 2 * what.batch * what.heads >= multiprocessors);
}

}  // namespace common
}  // namespace sg
