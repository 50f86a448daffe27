// SPDX-License-Identifier: Apache-2.0
// How many bytes a kernel reads or writes at once: as many as the addresses, pitches and sizes of its operands allow,
// which are aligned to their components only. The kernels take their form from these functions; the emulated GPU
// refuses operands that are not aligned to it.
#pragma once

#include <streamgemm/backend.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "backends/common/types.hpp"

namespace sg::cuda {

inline bool is_multiple(const void *address, std::int64_t of) noexcept {
  return reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(of) == 0;
}

// An operand of `runs` contiguous runs, one every `pitch` bytes, of which a kernel accesses `bytes` at once.
struct access {
  const void *first;
  std::int64_t bytes, runs = 1, pitch = 0;
};
inline bool is_aligned(const access &x) noexcept {
  return is_multiple(x.first, x.bytes) && (x.runs <= 1 || x.pitch % x.bytes == 0);
}
inline bool are_aligned(std::initializer_list<access> operands) noexcept {
  return std::all_of(operands.begin(), operands.end(), [](const access &x) { return is_aligned(x); });
}

inline constexpr std::int64_t widest_access = 16;

// The columns of operands without gaps as one column.
inline sg_backend_elementwise as_one_column(sg_backend_elementwise what) noexcept {
  const bool dense = what.lda == what.m && what.ldc == what.m && (what.b == nullptr || what.ldb == what.m);
  if (dense) what.m *= what.n, what.n = 1;
  return what;
}
inline sg_backend_convert as_one_column(sg_backend_convert what) noexcept {
  const bool dense = what.op != SG_TRANSPOSE_T && what.divisors == nullptr && what.lda == what.m && what.ldc == what.m;
  if (dense) what.m *= what.n, what.n = 1;
  return what;
}

// Elements at once.
inline std::int64_t pack_of(const sg_backend_elementwise &what) noexcept {
  const std::int64_t size = element_size(what.type);
  const bool aligned = are_aligned({{what.a, widest_access, what.n, what.lda * size},
                                    {what.b, widest_access, what.n, what.b == nullptr ? 0 : what.ldb * size},
                                    {what.c, widest_access, what.n, what.ldc * size}});
  return aligned ? widest_access / size : 1;
}

// The wider elements are 16 bytes, or for f64 two accesses of 16.
constexpr std::int64_t whole_pack_of(std::int64_t in_size, std::int64_t out_size) noexcept {
  return in_size == 2 && out_size == 2 ? 8 : 4;
}
inline std::int64_t pack_of(const sg_backend_convert &what) noexcept {
  const std::int64_t in_size = element_size(what.in_type), out_size = element_size(what.out_type);
  const std::int64_t count = whole_pack_of(in_size, out_size);
  const bool aligned =
      what.op != SG_TRANSPOSE_T && are_aligned({{what.a, count * in_size, what.n, what.lda * in_size},
                                                {what.a, count * in_size, what.batch, what.stride_a * in_size},
                                                {what.c, count * out_size, what.n, what.ldc * out_size},
                                                {what.c, count * out_size, what.batch, what.stride_c * out_size}});
  return aligned ? count : 1;
}

// X and Y of operations on rows.
struct row_operands {
  std::int64_t rows, cols;
  const void *x;
  std::int64_t x_row, x_col;
  void *y;
  std::int64_t y_row, y_col;
};
template <class Command>
row_operands operands_of(const Command &c) noexcept {
  return {c.rows, c.cols, c.x, c.x_row, c.x_col, c.y, c.y_row, c.y_col};
}
// `vectors`: other operands of one row, of X's type.
inline std::int64_t pack_of(const row_operands &p, std::int64_t x_size, std::int64_t y_size,
                            std::initializer_list<const void *> vectors) noexcept {
  const std::int64_t count = widest_access / x_size;
  const bool is_apart = p.cols > 1 && (p.x_col != 1 || p.y_col != 1);
  const bool aligned =
      are_aligned({{p.x, widest_access, p.rows, p.x_row * x_size}, {p.y, count * y_size, p.rows, p.y_row * y_size}});
  const auto is_whole = [](const void *at) { return is_multiple(at, widest_access); };
  return aligned && !is_apart && p.cols % count == 0 && std::all_of(vectors.begin(), vectors.end(), is_whole) ? count
                                                                                                              : 1;
}

// Values of one block of a dequantization, in packs or in pairs of single elements.
inline constexpr std::int64_t dequantized_in_packs = 8;
inline std::int64_t packed_bytes(const sg_backend_dequantize &what) noexcept {  // of X
  return what.quantization == SG_QUANTIZATION_I4 ? dequantized_in_packs / 2 : dequantized_in_packs;
}
inline bool is_in_packs(const sg_backend_dequantize &what) noexcept {
  return what.block_size % dequantized_in_packs == 0 &&
         are_aligned({{what.x, packed_bytes(what), what.rows, what.x_row},
                      {what.y, widest_access, what.rows, what.y_row * element_size(what.type)}});
}

// Bytes at once.
inline std::int64_t access_of(const sg_backend_gather &what) noexcept {
  const bool wide = what.row_bytes % widest_access == 0 && are_aligned({{what.table, widest_access, 2, what.table_row},
                                                                        {what.y, widest_access, 2, what.y_row}});
  return wide ? widest_access : what.component_bytes;
}
inline std::int64_t access_of(const sg_backend_copy &what) noexcept {
  for (std::int64_t bytes = widest_access; bytes >= 4; bytes /= 2)
    if (what.width % bytes == 0 &&
        are_aligned({{what.dst, bytes, 2, what.dst_pitch}, {what.src, bytes, 2, what.src_pitch}}))
      return bytes;
  return 1;
}

// Adjacent channels that are adjacent columns, as elements of up to 16 bytes.
inline sg_backend_im2col widened(const sg_backend_im2col &what) noexcept {
  sg_backend_im2col wide = what;
  sg_backend_windows &w = wide.of;
  if (w.channel != 1 || w.column != 1 || !w.channels_inner) return what;
  const auto size = std::int64_t(w.channels / w.groups);
  const std::int64_t all = size | w.image | w.row | w.pixel | w.position;
  while (wide.element_bytes < widest_access && all % (2 * wide.element_bytes / what.element_bytes) == 0 &&
         is_multiple(what.x, 2 * wide.element_bytes) && is_multiple(what.matrix, 2 * wide.element_bytes))
    wide.element_bytes *= 2;
  const std::int32_t factor = wide.element_bytes / what.element_bytes;
  w.channels /= factor;
  for (std::int64_t *each : {&w.image, &w.row, &w.pixel, &w.position}) *each /= factor;
  return wide;
}
// Whole elements, or the parts of complex ones.
inline std::int64_t access_of(const sg_backend_im2col &what) noexcept {
  const bool whole = is_multiple(what.x, what.element_bytes) && is_multiple(what.matrix, what.element_bytes);
  return whole || what.element_bytes < 8 ? what.element_bytes : what.element_bytes / 2;
}

// Queries, keys and values.
inline std::int64_t access_of(const sg_backend_attention &what) noexcept {
  const std::int64_t size = element_size(what.type);
  const auto fits = [&](const sg_backend_heads &x, std::int64_t width) {
    return is_multiple(x.data, widest_access) && (x.batch | x.head | x.token | width) * size % widest_access == 0;
  };
  return fits(what.q, what.width) && fits(what.k, what.width) && fits(what.v, what.value_width) ? widest_access : size;
}

}  // namespace sg::cuda
