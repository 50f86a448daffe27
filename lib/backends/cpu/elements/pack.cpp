// SPDX-License-Identifier: Apache-2.0
#include "pack.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backends/cpu/simd/simd.hpp"

namespace sg::cpu {
namespace {

// n contiguous elements; between different types only towards f32, and from f8 towards bf16.
void convert(void *dst, sg_dtype to, const void *src, sg_dtype from, std::int64_t n) noexcept {
  if (to == from) {
    std::memcpy(dst, src, static_cast<std::size_t>(n * element_size(from)));
    return;
  }
  if (to == SG_DTYPE_BF16) {
    const auto from_f8 = from == SG_DTYPE_F8_E4M3 ? simd().bf16_from_e4m3 : simd().bf16_from_e5m2;
    from_f8(static_cast<std::uint16_t *>(dst), static_cast<const std::uint8_t *>(src), n);
    return;
  }
  auto *wide = static_cast<float *>(dst);
  if (from == SG_DTYPE_F16) simd().f32_from_f16(wide, static_cast<const std::uint16_t *>(src), n);
  if (from == SG_DTYPE_BF16) simd().f32_from_bf16(wide, static_cast<const std::uint16_t *>(src), n);
  if (from == SG_DTYPE_I8) simd().f32_from_i8(wide, static_cast<const std::int8_t *>(src), n);
  if (from == SG_DTYPE_F8_E4M3) simd().f32_from_e4m3(wide, static_cast<const std::uint8_t *>(src), n);
  if (from == SG_DTYPE_F8_E5M2) simd().f32_from_e5m2(wide, static_cast<const std::uint8_t *>(src), n);
}

// Columns of the source, a few cache lines each, that are transposed at once.
constexpr std::int64_t transpose_block = 16;

// dst(i, j) = src(j, i) for i < rows, j < cols, of elements of `size` bytes; dst is tight. Complex elements are aligned
// as their parts are.
template <std::size_t size>
void transpose(char *dst, std::int64_t dst_ld, const char *src, std::int64_t src_ld, std::int64_t rows,
               std::int64_t cols) noexcept {
  constexpr auto bytes = static_cast<std::int64_t>(size);
  for (std::int64_t j0 = 0; j0 < cols; j0 += transpose_block)
    for (std::int64_t i0 = 0; i0 < rows; i0 += transpose_block) {
      const std::int64_t i1 = std::min(i0 + transpose_block, rows), j1 = std::min(j0 + transpose_block, cols);
      for (std::int64_t j = j0; j < j1; ++j)
        for (std::int64_t i = i0; i < i1; ++i)
          std::memcpy(dst + (i + j * dst_ld) * bytes, src + (j + i * src_ld) * bytes, size);
    }
}

void transpose_elements(void *dst, std::int64_t dst_ld, const void *src, std::int64_t src_ld, std::int64_t rows,
                        std::int64_t cols, std::int64_t size) noexcept {
  const auto of = [&]<std::size_t bytes>(std::integral_constant<std::size_t, bytes>) {
    transpose<bytes>(static_cast<char *>(dst), dst_ld, static_cast<const char *>(src), src_ld, rows, cols);
  };
  switch (size) {
    case 1: return of(std::integral_constant<std::size_t, 1>{});
    case 2: return of(std::integral_constant<std::size_t, 2>{});
    case 4: return of(std::integral_constant<std::size_t, 4>{});
    case 8: return of(std::integral_constant<std::size_t, 8>{});
    default: return of(std::integral_constant<std::size_t, 16>{});
  }
}

template <class T>
void conjugate(T *panel, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) panel[2 * i + 1] = -panel[2 * i + 1];
}

}  // namespace

void pack(void *panel, sg_dtype panel_type, const block &of) noexcept {
  const auto [x, type, ld, op, row, col, rows, cols] = of;
  const std::int64_t size = element_size(type), panel_size = element_size(panel_type);
  const auto *from = static_cast<const char *>(x);
  auto *to = static_cast<char *>(panel);
  if (op == SG_TRANSPOSE_N) {
    for (std::int64_t j = 0; j < cols; ++j)
      convert(to + j * rows * panel_size, panel_type, from + (row + (col + j) * ld) * size, type, rows);
    return;
  }
  from += (col + row * ld) * size;
  if (panel_type == type) {
    transpose_elements(panel, rows, from, ld, rows, cols, size);
    if (op == SG_TRANSPOSE_C && type == SG_DTYPE_C64) conjugate(static_cast<float *>(panel), rows * cols);
    if (op == SG_TRANSPOSE_C && type == SG_DTYPE_C128) conjugate(static_cast<double *>(panel), rows * cols);
    return;
  }
  // Transpose some columns of the panel in the source's type, then convert them.
  constexpr std::int64_t buffer_bytes = 16384;
  alignas(64) char turned[buffer_bytes];
  const std::int64_t row_step = std::min<std::int64_t>(rows, buffer_bytes / (transpose_block * size));
  for (std::int64_t j0 = 0; j0 < cols; j0 += transpose_block)
    for (std::int64_t i0 = 0; i0 < rows; i0 += row_step) {
      const std::int64_t height = std::min(row_step, rows - i0), width = std::min(transpose_block, cols - j0);
      transpose_elements(turned, height, from + (j0 + i0 * ld) * size, ld, height, width, size);
      for (std::int64_t j = 0; j < width; ++j)
        convert(to + (i0 + (j0 + j) * rows) * panel_size, panel_type, turned + j * height * size, type, height);
    }
}

void widen(void *sums, const void *c, sg_dtype type, std::int64_t n) noexcept {
  convert(sums, sum_type_of(type), c, type, n);
}

void narrow(void *c, sg_dtype type, const void *sums, std::int64_t n) noexcept {
  if (type == SG_DTYPE_F16)
    simd().f16_from_f32(static_cast<std::uint16_t *>(c), static_cast<const float *>(sums), n);
  else if (type == SG_DTYPE_BF16)
    simd().bf16_from_f32(static_cast<std::uint16_t *>(c), static_cast<const float *>(sums), n);
  else
    std::memcpy(c, sums, static_cast<std::size_t>(n * element_size(type)));
}

}  // namespace sg::cpu
