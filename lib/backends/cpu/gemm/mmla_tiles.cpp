// SPDX-License-Identifier: Apache-2.0
// mma.hpp's loops with Arm's BFMMLA and SMMLA: the products of two rows with two rows, of 8 bytes each, are added to
// 2 x 2 sums. As in simd.cpp, no inline function of another header may be called here.
#include <arm_neon.h>

#include "kernel.hpp"
#include "mma.hpp"

namespace sg::cpu::mma {
namespace {

constexpr std::int64_t block_bytes = strip * row_bytes;

std::int64_t at_most(std::int64_t most, std::int64_t x) noexcept { return x < most ? x : most; }
std::int64_t blocks_of(std::int64_t along, std::int64_t element_bytes) noexcept {
  return (along * element_bytes + row_bytes - 1) / row_bytes;
}

// Runs of bytes, ld_bytes apart, as many as a block has room for. `runs`, `bytes`: how many there are, and of how many
// bytes; zeros beyond.
template <std::int64_t run_bytes>
inline uint8x16x4_t load(const std::uint8_t *at, std::int64_t ld_bytes, std::int64_t runs,
                         std::int64_t bytes) noexcept {
  constexpr std::int64_t all_runs = block_bytes / run_bytes;
  if (runs >= all_runs && bytes >= run_bytes) {
    uint8x16x4_t block;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      if constexpr (run_bytes == 16)
        block.val[i] = vld1q_u8(at + i * ld_bytes);
      else
        block.val[i] = vcombine_u8(vld1_u8(at + 2 * i * ld_bytes), vld1_u8(at + (2 * i + 1) * ld_bytes));
    }
    return block;
  }
  std::uint8_t block[block_bytes] = {};
  for (std::int64_t i = 0; i < at_most(all_runs, runs); ++i)
    __builtin_memcpy(block + i * run_bytes, at + i * ld_bytes, static_cast<std::size_t>(at_most(run_bytes, bytes)));
  return vld1q_u8_x4(block);
}

// Of a block whose elements are contiguous across: where the bytes of its rows are.
template <std::int64_t element_bytes>
struct transposition {
  std::uint8_t from[block_bytes];
  constexpr transposition() noexcept {
    for (std::int64_t i = 0; i < block_bytes; ++i) {
      const std::int64_t across = i / row_bytes, along = i % row_bytes / element_bytes;
      from[i] = static_cast<std::uint8_t>((along * strip + across) * element_bytes + i % element_bytes);
    }
  }
};

template <std::int64_t element_bytes>
void pack(void *panel, const source &from) noexcept {
  static constexpr transposition<element_bytes> transposed;
  const std::int64_t blocks = blocks_of(from.along, element_bytes), ld_bytes = from.ld * element_bytes;
  const std::int64_t strips = (from.across + strip - 1) / strip;
  const auto *const x = static_cast<const std::uint8_t *>(from.x);
  auto *const to = static_cast<std::uint8_t *>(panel);
  const auto pack_block = [&](std::int64_t s, std::int64_t b) {
    const std::int64_t across = s * strip, along = b * (row_bytes / element_bytes);
    const std::int64_t left_across = from.across - across, left_along = from.along - along;
    const std::int64_t at_across = from.first_across + across, at_along = from.first_along + along;
    std::uint8_t *const block = to + (s * blocks + b) * block_bytes;
    if (from.along_is_contiguous) {
      const std::uint8_t *const at = x + at_across * ld_bytes + at_along * element_bytes;
      return vst1q_u8_x4(block, load<row_bytes>(at, ld_bytes, left_across, left_along * element_bytes));
    }
    const std::uint8_t *const at = x + at_along * ld_bytes + at_across * element_bytes;
    const uint8x16x4_t loaded = load<strip * element_bytes>(at, ld_bytes, left_along, left_across * element_bytes);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) vst1q_u8(block + 16 * i, vqtbl4q_u8(loaded, vld1q_u8(transposed.from + 16 * i)));
  };
  // Loads contiguous memory up to its end.
  if (from.along_is_contiguous) {
    for (std::int64_t s = 0; s < strips; ++s)
      for (std::int64_t b = 0; b < blocks; ++b) pack_block(s, b);
  } else {
    for (std::int64_t b = 0; b < blocks; ++b)
      for (std::int64_t s = 0; s < strips; ++s) pack_block(s, b);
  }
}

void pack(void *panel, const source &from) noexcept {
  return from.element_bytes == 2 ? pack<2>(panel, from) : pack<1>(panel, from);
}

// Rows of the first operand and of the second give rows and columns of the sums.
inline void add_products(float32x4_t &sums, uint8x16_t rows, uint8x16_t columns) noexcept {
  sums = vbfmmlaq_f32(sums, vreinterpretq_bf16_u8(rows), vreinterpretq_bf16_u8(columns));
}
inline void add_products(int32x4_t &sums, uint8x16_t rows, uint8x16_t columns) noexcept {
  sums = vmmlaq_s32(sums, vreinterpretq_s8_u8(rows), vreinterpretq_s8_u8(columns));
}

// Two elements, of 4 bytes each, of each of two columns.
constexpr std::int64_t c_bytes = 4;
inline uint8x16_t load_sums(const std::uint8_t *c, std::int64_t ldc_bytes) noexcept {
  return vcombine_u8(vld1_u8(c), vld1_u8(c + ldc_bytes));
}
inline void store_sums(std::uint8_t *c, std::int64_t ldc_bytes, uint8x16_t sums) noexcept {
  vst1_u8(c, vget_low_u8(sums));
  vst1_u8(c + ldc_bytes, vget_high_u8(sums));
}

// A block of C, 8 by 8, stays in 16 vectors; the first operand's rows are its columns, so that its sums are column
// major.
template <class Sums>
void multiply(const gemm_args &p, std::int64_t element_bytes) noexcept {
  const std::int64_t blocks = blocks_of(p.k, element_bytes), ldc_bytes = p.ldc * c_bytes;
  for (std::int64_t j = 0; j < p.n; j += strip)
    for (std::int64_t i = 0; i < p.m; i += strip) {
      const auto *a = static_cast<const std::uint8_t *>(p.a) + i / strip * blocks * block_bytes;
      const auto *b = static_cast<const std::uint8_t *>(p.b) + j / strip * blocks * block_bytes;
      auto *const c = static_cast<std::uint8_t *>(p.c) + i * c_bytes + j * ldc_bytes;
      const auto at = [&](int column, int row) { return c + 2 * (row * c_bytes + column * ldc_bytes); };
      Sums sums[4][4] = {};
      if (p.beta.re != 0)
#pragma GCC unroll 4
        for (int column = 0; column < 4; ++column)
#pragma GCC unroll 4
          for (int row = 0; row < 4; ++row)
            sums[column][row] = reinterpret_cast<Sums>(load_sums(at(column, row), ldc_bytes));
      for (std::int64_t block = 0; block < blocks; ++block, a += block_bytes, b += block_bytes) {
        const uint8x16x4_t rows = vld1q_u8_x4(a), columns = vld1q_u8_x4(b);
#pragma GCC unroll 4
        for (int column = 0; column < 4; ++column)
#pragma GCC unroll 4
          for (int row = 0; row < 4; ++row) add_products(sums[column][row], columns.val[column], rows.val[row]);
      }
#pragma GCC unroll 4
      for (int column = 0; column < 4; ++column)
#pragma GCC unroll 4
        for (int row = 0; row < 4; ++row)
          store_sums(at(column, row), ldc_bytes, reinterpret_cast<uint8x16_t>(sums[column][row]));
    }
}

}  // namespace

void pack_a(void *panel, const source &from) noexcept { pack(panel, from); }
void pack_b(void *panel, const source &from) noexcept { pack(panel, from); }

void multiply_bf16(const gemm_args &p) noexcept { multiply<float32x4_t>(p, 2); }
void multiply_i8(const gemm_args &p) noexcept { multiply<int32x4_t>(p, 1); }

}  // namespace sg::cpu::mma
