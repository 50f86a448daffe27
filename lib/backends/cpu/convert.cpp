// SPDX-License-Identifier: Apache-2.0
#include "convert.hpp"

#include <algorithm>

#include "pack.hpp"
#include "poll.hpp"
#include "simd.hpp"

namespace sg::cpu {
namespace {

bool is_short_real(sg_dtype type) noexcept {
  return type == SG_DTYPE_F32 || type == SG_DTYPE_F16 || type == SG_DTYPE_BF16;
}

}  // namespace

bool has_dequantize(const sg_backend_dequantize &what) noexcept {
  const bool known = what.quantization == SG_QUANTIZATION_I8 || what.quantization == SG_QUANTIZATION_I4;
  return known && is_short_real(what.type) && is_short_real(what.scale_type);
}

sg_status run_dequantize(const sg_backend_dequantize &what, workspace &space) noexcept {
  constexpr std::int64_t step = 2048;  // values of a row, which stay in the first-level cache; even
  alignas(64) float values[step];
  const std::int64_t blocks = what.cols / what.block_size, size = element_size(what.type);
  auto *const factors =
      static_cast<float *>(space.get(scratch::sums, 2 * sizeof(float) * static_cast<std::size_t>(blocks)));
  if (factors == nullptr) return SG_STATUS_OUT_OF_MEMORY;
  float *const zeros = what.zero_points == nullptr ? nullptr : factors + blocks;
  poll end(space);
  for (std::int64_t i = 0; i < what.rows; ++i) {
    const void *const x = static_cast<const char *>(what.x) + i * what.x_row;
    const char *const scales =
        static_cast<const char *>(what.scales) + i * what.scales_row * element_size(what.scale_type);
    char *const y = static_cast<char *>(what.y) + i * what.y_row * size;
    widen(factors, scales, what.scale_type, blocks);
    if (zeros != nullptr) simd().f32_from_i8(zeros, what.zero_points + i * what.zero_points_row, blocks);
    for (std::int64_t first = 0; first < what.cols; first += step) {
      const std::int64_t last = std::min(first + step, what.cols);
      void *const to = y + first * size;
      float *const wide = what.type == SG_DTYPE_F32 ? static_cast<float *>(to) : values;
      simd().layers->dequantize(what.quantization, wide, x, factors, zeros, what.block_size, first, last);
      if (wide == values) narrow(to, what.type, values, last - first);
      if (end.stops(last - first)) return SG_STATUS_CANCELLED;
    }
  }
  return SG_STATUS_OK;
}

}  // namespace sg::cpu
