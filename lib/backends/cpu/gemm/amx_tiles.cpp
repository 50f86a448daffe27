// SPDX-License-Identifier: Apache-2.0
// mma.hpp's loops with AMX. As in simd.cpp, no inline function of another header may be called here.
#include <immintrin.h>

#include "kernel.hpp"
#include "mma.hpp"

namespace sg::cpu::mma {
namespace {

constexpr std::int64_t tile_rows = 16;
constexpr std::int64_t tile_bytes = tile_rows * row_bytes;
constexpr std::int64_t block_bytes = 2 * tile_bytes;

std::int64_t at_most(std::int64_t most, std::int64_t x) noexcept { return x < most ? x : most; }
std::int64_t blocks_of(std::int64_t along, std::int64_t element_bytes) noexcept {
  return (along * element_bytes + row_bytes - 1) / row_bytes;
}

// 16 vectors: rows of a tile, before or after transposition.
struct rows16 {
  __m512i row[tile_rows];
};

// The 16 x 16 matrix of 32-bit elements, transposed.
inline void transpose_rows(rows16 &x) noexcept {
  rows16 y;
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    y.row[i] = _mm512_unpacklo_epi32(x.row[i], x.row[i + 1]);
    y.row[i + 1] = _mm512_unpackhi_epi32(x.row[i], x.row[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    x.row[i] = _mm512_unpacklo_epi64(y.row[i], y.row[i + 2]);
    x.row[i + 1] = _mm512_unpackhi_epi64(y.row[i], y.row[i + 2]);
    x.row[i + 2] = _mm512_unpacklo_epi64(y.row[i + 1], y.row[i + 3]);
    x.row[i + 3] = _mm512_unpackhi_epi64(y.row[i + 1], y.row[i + 3]);
  }
  // Each lane of 128 bits of x.row[4 * q + c] is rows 4 q to 4 q + 3 of column 4 * lane + c.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i low01 = _mm512_shuffle_i32x4(x.row[c], x.row[4 + c], 0x44);
    const __m512i high01 = _mm512_shuffle_i32x4(x.row[c], x.row[4 + c], 0xee);
    const __m512i low23 = _mm512_shuffle_i32x4(x.row[8 + c], x.row[12 + c], 0x44);
    const __m512i high23 = _mm512_shuffle_i32x4(x.row[8 + c], x.row[12 + c], 0xee);
    y.row[c] = _mm512_shuffle_i32x4(low01, low23, 0x88);
    y.row[4 + c] = _mm512_shuffle_i32x4(low01, low23, 0xdd);
    y.row[8 + c] = _mm512_shuffle_i32x4(high01, high23, 0x88);
    y.row[12 + c] = _mm512_shuffle_i32x4(high01, high23, 0xdd);
  }
  x = y;
}

// Loads 16 elements across, from (across, along) of the source, up to its end; one in each 32-bit element.
template <int element_bytes>
inline __m512i widened(const source &from, std::int64_t across, std::int64_t along) noexcept {
  const std::int64_t left = from.across - across;
  if (left <= 0 || along >= from.along) return _mm512_setzero_si512();
  const auto mask = static_cast<__mmask16>((1u << at_most(16, left)) - 1);
  const char *at = static_cast<const char *>(from.x) +
                   (from.first_across + across + (from.first_along + along) * from.ld) * element_bytes;
  if constexpr (element_bytes == 2) return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, at));
  return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, at));
}

// Loads 16 across by 64 bytes along, from (across, along): one vector for each position across if memory is contiguous
// along, otherwise one for each 32-bit step along.
template <int element_bytes>
inline void load(rows16 &to, const source &from, std::int64_t across, std::int64_t along) noexcept {
  if (from.along_is_contiguous) {
    const std::int64_t bytes = at_most(row_bytes, (from.along - along) * element_bytes);
    const __mmask64 mask = ~std::uint64_t{0} >> (row_bytes - bytes);
    const char *at = static_cast<const char *>(from.x) +
                     (from.first_along + along + (from.first_across + across) * from.ld) * element_bytes;
    for (std::int64_t i = 0; i < tile_rows; ++i, at += from.ld * element_bytes)
      to.row[i] = across + i < from.across ? _mm512_maskz_loadu_epi8(mask, at) : _mm512_setzero_si512();
    return;
  }
  constexpr int group = 4 / element_bytes;
  for (std::int64_t i = 0; i < tile_rows; ++i) {
    __m512i all = widened<element_bytes>(from, across, along + i * group);
#pragma GCC unroll 4
    for (int g = 1; g < group; ++g)
      all = _mm512_or_si512(all, _mm512_slli_epi32(widened<element_bytes>(from, across, along + i * group + g),
                                                   static_cast<unsigned>(g * element_bytes * 8)));
    to.row[i] = all;
  }
}

// `across_rows`: the rows of a tile are positions across, as for B; otherwise steps along, as for A.
template <int element_bytes>
void pack(void *panel, const source &from, bool across_rows) noexcept {
  const std::int64_t blocks = blocks_of(from.along, element_bytes);
  const auto pack_tile = [&](std::int64_t across, std::int64_t block) {
    rows16 tile;
    load<element_bytes>(tile, from, across, block * (row_bytes / element_bytes));
    if (across_rows != from.along_is_contiguous) transpose_rows(tile);
    const std::int64_t first = (across / strip * blocks + block) * block_bytes + across % strip * row_bytes;
    auto *to = reinterpret_cast<__m512i *>(static_cast<char *>(panel) + first);
    for (std::int64_t i = 0; i < tile_rows; ++i) _mm512_store_si512(to + i, tile.row[i]);
  };
  const std::int64_t across_end = (from.across + strip - 1) / strip * strip;
  // Loads contiguous memory up to its end.
  if (from.along_is_contiguous) {
    for (std::int64_t across = 0; across < across_end; across += tile_rows)
      for (std::int64_t block = 0; block < blocks; ++block) pack_tile(across, block);
  } else {
    for (std::int64_t block = 0; block < blocks; ++block)
      for (std::int64_t across = 0; across < across_end; across += tile_rows) pack_tile(across, block);
  }
}

void pack(void *panel, const source &from, bool across_rows) noexcept {
  return from.element_bytes == 2 ? pack<2>(panel, from, across_rows) : pack<1>(panel, from, across_rows);
}

struct alignas(64) tile_shapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

struct all_shapes : tile_shapes {
  constexpr all_shapes() noexcept {
    for (int i = 0; i < 8; ++i) {
      row_bytes[i] = mma::row_bytes;
      rows[i] = tile_rows;
    }
  }
};
constexpr all_shapes shapes;

// A block of C, 32 by 32, stays in tiles 0 to 3; a tile's row is a column of C.
template <bool whole_numbers>
void multiply(const gemm_args &p) noexcept {
  constexpr std::int64_t c_bytes = 4;
  const std::int64_t blocks = blocks_of(p.k, whole_numbers ? 1 : 2);
  const std::int64_t ldc_bytes = p.ldc * c_bytes;
  _tile_loadconfig(&shapes);
  for (std::int64_t j = 0; j < p.n; j += strip)
    for (std::int64_t i = 0; i < p.m; i += strip) {
      const char *a = static_cast<const char *>(p.a) + i / strip * blocks * block_bytes;
      const char *b = static_cast<const char *>(p.b) + j / strip * blocks * block_bytes;
      char *const c = static_cast<char *>(p.c) + (i + j * p.ldc) * c_bytes;
      char *const c_right = c + tile_rows * ldc_bytes;
      if (p.beta.re != 0) {
        _tile_loadd(0, c, ldc_bytes);
        _tile_loadd(1, c + row_bytes, ldc_bytes);
        _tile_loadd(2, c_right, ldc_bytes);
        _tile_loadd(3, c_right + row_bytes, ldc_bytes);
      } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
      }
      for (std::int64_t block = 0; block < blocks; ++block, a += block_bytes, b += block_bytes) {
        _tile_loadd(4, b, row_bytes);
        _tile_loadd(6, a, row_bytes);
        _tile_loadd(7, a + tile_bytes, row_bytes);
        _tile_loadd(5, b + tile_bytes, row_bytes);
        if constexpr (whole_numbers) {
          _tile_dpbssd(0, 4, 6);
          _tile_dpbssd(1, 4, 7);
          _tile_dpbssd(2, 5, 6);
          _tile_dpbssd(3, 5, 7);
        } else {
          _tile_dpbf16ps(0, 4, 6);
          _tile_dpbf16ps(1, 4, 7);
          _tile_dpbf16ps(2, 5, 6);
          _tile_dpbf16ps(3, 5, 7);
        }
      }
      _tile_stored(0, c, ldc_bytes);
      _tile_stored(1, c + row_bytes, ldc_bytes);
      _tile_stored(2, c_right, ldc_bytes);
      _tile_stored(3, c_right + row_bytes, ldc_bytes);
    }
  _tile_release();
}

}  // namespace

void pack_a(void *panel, const source &from) noexcept { pack(panel, from, false); }
void pack_b(void *panel, const source &from) noexcept { pack(panel, from, true); }

void multiply_bf16(const gemm_args &p) noexcept { multiply<false>(p); }
void multiply_i8(const gemm_args &p) noexcept { multiply<true>(p); }

}  // namespace sg::cpu::mma
