// SPDX-License-Identifier: Apache-2.0
// The operations of convert.h: products of a dequantization in f32, all else with one rounding.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "address_space.hpp"
#include "layers.hpp"

namespace sg::sim {

// Value j of a row of quantized values.
inline int quantized_value(sg_quantization quantization, const std::byte *row, std::int64_t j) noexcept {
  if (quantization == SG_QUANTIZATION_I8) return std::to_integer<std::int8_t>(row[j]);
  const int bits = std::to_integer<int>(row[j / 2] >> (j % 2 * 4)) & 15;
  return bits < 8 ? bits : bits - 16;
}

// `zero_points` may be NULL. The command's own pointers are not used.
inline void run_dequantize(const sg_backend_dequantize &what, const std::byte *x, const std::byte *scales,
                           const std::byte *zero_points, std::byte *y) {
  with_layer_type(what.scale_type, [&]<class Scale>() {
    with_layer_type(what.type, [&]<class Traits>() {
      for (std::int64_t i = 0; i < what.rows; ++i)
        for (std::int64_t j = 0; j < what.cols; ++j) {
          const std::int64_t block = j / what.block_size;
          const auto scale = static_cast<float>(Scale::load(stored_at<Scale>(scales)[i * what.scales_row + block]));
          const int zero =
              zero_points ? std::to_integer<std::int8_t>(zero_points[i * what.zero_points_row + block]) : 0;
          const int value = quantized_value(what.quantization, x + i * what.x_row, j) - zero;
          stored_at<Traits>(y)[i * what.y_row + j] = Traits::store(static_cast<float>(value) * scale);
        }
    });
  });
}

inline std::function<void()> work_of(const address_space &memory, const sg_backend_dequantize &what) {
  const std::int64_t blocks = what.cols / what.block_size;
  const auto extent = [&](std::int64_t row, std::int64_t cols, sg_dtype type) {
    return strided_extent(what.rows, row, cols, 1, type);
  };
  const std::int64_t bytes = what.quantization == SG_QUANTIZATION_I4 ? what.cols / 2 : what.cols;
  const std::byte *x = memory.device_bytes(what.x, extent(what.x_row, bytes, SG_DTYPE_I8), "X of a dequantization");
  const std::byte *scales =
      memory.device_bytes(what.scales, extent(what.scales_row, blocks, what.scale_type), "scales of a dequantization");
  const std::byte *zero_points = nullptr;
  if (what.zero_points)
    zero_points = memory.device_bytes(what.zero_points, extent(what.zero_points_row, blocks, SG_DTYPE_I8),
                                      "zero points of a dequantization");
  std::byte *y = memory.device_bytes(what.y, extent(what.y_row, what.cols, what.type), "Y of a dequantization");
  return [what, x, scales, zero_points, y] { run_dequantize(what, x, scales, zero_points, y); };
}

// The command's own pointers are not used. `divisors` may be NULL.
inline void run_convert(const sg_backend_convert &what, const std::byte *a, std::byte *c, const float *divisors) {
  const std::int64_t row = what.op == SG_TRANSPOSE_T ? what.lda : 1, col = what.op == SG_TRANSPOSE_T ? 1 : what.lda;
  with_layer_type(what.in_type, [&]<class From>() {
    with_layer_type(what.out_type, [&]<class To>() {
      for (std::int64_t item = 0; item < what.batch; ++item)
        for (std::int64_t j = 0; j < what.n; ++j) {
          const float divisor = divisors && divisors[item * what.n + j] != 0 ? divisors[item * what.n + j] : 1;
          for (std::int64_t i = 0; i < what.m; ++i) {
            const auto from = stored_at<From>(a)[item * what.stride_a + i * row + j * col];
            auto &to = stored_at<To>(c)[item * what.stride_c + i + j * what.ldc];
            if (divisors)
              to = To::store(static_cast<float>(From::load(from)) / divisor);
            else if constexpr (std::is_same_v<From, To>)
              to = from;
            else
              to = To::store(From::load(from));
          }
        }
    });
  });
}

inline std::function<void()> work_of(const address_space &memory, const sg_backend_convert &what) {
  const bool transposes = what.op == SG_TRANSPOSE_T;
  const auto extent = [&](std::int64_t rows, std::int64_t cols, std::int64_t ld, std::int64_t stride, sg_dtype type) {
    return strided_extent(rows, 1, cols, ld, type) + strided_extent(1, 0, what.batch, stride, type) -
           static_cast<std::uint64_t>(element_size(type));
  };
  const std::uint64_t extent_of_a =
      extent(transposes ? what.n : what.m, transposes ? what.m : what.n, what.lda, what.stride_a, what.in_type);
  const std::byte *a = memory.device_bytes(what.a, extent_of_a, "A of a conversion");
  std::byte *c =
      memory.device_bytes(what.c, extent(what.m, what.n, what.ldc, what.stride_c, what.out_type), "C of a conversion");
  const float *divisors = nullptr;
  if (what.divisors)
    divisors = reinterpret_cast<const float *>(memory.device_bytes(
        what.divisors, strided_extent(what.batch, what.n, what.n, 1, SG_DTYPE_F32), "divisors of a conversion"));
  return [what, a, c, divisors] { run_convert(what, a, c, divisors); };
}

}  // namespace sg::sim
