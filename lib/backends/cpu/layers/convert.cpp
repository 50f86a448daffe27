// SPDX-License-Identifier: Apache-2.0
#include "convert.hpp"

#include <algorithm>
#include <cstring>

#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/simd/simd.hpp"
#include "backends/cpu/worker/poll.hpp"
#include "layers.hpp"

namespace sg::cpu {
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

namespace {

// n contiguous elements, n <= cast_step. Numbers of f64 become short by way of f32 rounded to odd, which leaves the one
// rounding to the narrowing.
constexpr std::int64_t cast_step = 1024;
void cast(void *to, sg_dtype out, const void *from, sg_dtype in, std::int64_t n) noexcept {
  alignas(64) float wide[cast_step];
  if (in == out) {
    if (to != from) std::memcpy(to, from, static_cast<std::size_t>(n * element_size(in)));
    return;
  }
  const simd_layer_ops &loops = *simd().layers;
  if (in == SG_DTYPE_F64 && out == SG_DTYPE_F32)
    return loops.f32_from_f64(static_cast<float *>(to), static_cast<const double *>(from), n);
  if (in == SG_DTYPE_F32) {
    std::memcpy(wide, from, static_cast<std::size_t>(n) * sizeof(float));
  } else if (in == SG_DTYPE_F64) {
    loops.odd_f32_from_f64(wide, static_cast<const double *>(from), n);
  } else {
    widen(wide, from, in, n);
  }
  if (out == SG_DTYPE_F64)
    loops.f64_from_f32(static_cast<double *>(to), wide, n);
  else
    narrow(to, out, wide, n);
}

// Columns of f32, each divided before the one rounding.
sg_status convert_quotients(const sg_backend_convert &what, const float *divisors, workspace &space) noexcept {
  alignas(64) float quotients[cast_step];
  poll end(space);
  for (std::int64_t j = 0; j < what.n; ++j)
    for (std::int64_t i = 0; i < what.m; i += cast_step) {
      const std::int64_t count = std::min(cast_step, what.m - i);
      std::memcpy(quotients, static_cast<const float *>(what.a) + i + j * what.lda,
                  static_cast<std::size_t>(count) * sizeof(float));
      if (divisors[j] != 0) simd().layers->divide(quotients, divisors[j], count);
      cast(static_cast<char *>(what.c) + (i + j * what.ldc) * element_size(what.out_type), what.out_type, quotients,
           SG_DTYPE_F32, count);
      if (end.stops(count)) return SG_STATUS_CANCELLED;
    }
  return SG_STATUS_OK;
}

// Transposed by tiles of the source, whose rows and columns are a few cache lines long.
sg_status convert_item(const sg_backend_convert &what, workspace &space) noexcept {
  constexpr std::int64_t side = 64;
  alignas(64) char tile[side * side * 8];
  const std::int64_t in_size = element_size(what.in_type), out_size = element_size(what.out_type);
  const bool transposes = what.op == SG_TRANSPOSE_T;
  const std::int64_t rows = transposes ? side : cast_step, cols = transposes ? side : 1;
  poll end(space);
  for (std::int64_t j0 = 0; j0 < what.n; j0 += cols)
    for (std::int64_t i0 = 0; i0 < what.m; i0 += rows) {
      const std::int64_t height = std::min(rows, what.m - i0), width = std::min(cols, what.n - j0);
      const char *from = static_cast<const char *>(what.a) + (i0 + j0 * what.lda) * in_size;
      if (transposes) {
        pack(tile, what.in_type, {what.a, what.in_type, what.lda, SG_TRANSPOSE_T, i0, j0, height, width});
        from = tile;
      }
      for (std::int64_t j = 0; j < width; ++j) {
        char *const to = static_cast<char *>(what.c) + (i0 + (j0 + j) * what.ldc) * out_size;
        cast(to, what.out_type, from + j * height * in_size, what.in_type, height);
      }
      if (end.stops(height * width)) return SG_STATUS_CANCELLED;
    }
  return SG_STATUS_OK;
}

}  // namespace

sg_status run_convert(const sg_backend_convert &what, workspace &space) noexcept {
  sg_backend_convert item = what;
  sg_status status = SG_STATUS_OK;
  for (std::int64_t i = 0; i < what.batch && status == SG_STATUS_OK; ++i) {
    item.a = static_cast<const char *>(what.a) + i * what.stride_a * element_size(what.in_type);
    item.c = static_cast<char *>(what.c) + i * what.stride_c * element_size(what.out_type);
    status = what.divisors ? convert_quotients(item, what.divisors + i * what.n, space) : convert_item(item, space);
  }
  return status;
}

}  // namespace sg::cpu
