// SPDX-License-Identifier: Apache-2.0
// The cpu backend's tiled GEMMs, with every panel kernel that this processor supports: at the edges of panels, every
// op, on operands next to unreadable memory. Integers, compared exactly.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/gemm/tiles.hpp"
#include "backends/cpu/worker/workspace.hpp"
#include "support/guarded.hpp"

namespace sg::cpu {
namespace {

struct types {
  sg_dtype in, out;
};

void store(char *at, sg_dtype type, int value) {
  const auto wide = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &wide, 4);
  const auto upper = static_cast<std::uint16_t>(bits >> 16);  // all of it, for values of a few bits
  constexpr char e5m2[] = {0, 0x3c, 0x40, 0x42, 0x44};        // 0 to 4
  switch (type) {
    case SG_DTYPE_I8: *at = static_cast<char>(value); break;
    case SG_DTYPE_I32: std::memcpy(at, &value, 4); break;
    case SG_DTYPE_F32: std::memcpy(at, &wide, 4); break;
    case SG_DTYPE_BF16: std::memcpy(at, &upper, 2); break;
    default: *at = static_cast<char>(e5m2[std::abs(value)] | (value < 0 ? 0x80 : 0));
  }
}

int load(const char *at, sg_dtype type) {
  float wide = 0;
  std::int32_t whole = 0;
  std::uint16_t upper = 0;
  switch (type) {
    case SG_DTYPE_I8: return static_cast<std::int8_t>(*at);
    case SG_DTYPE_I32: std::memcpy(&whole, at, 4); return whole;
    case SG_DTYPE_F32: std::memcpy(&wide, at, 4); return static_cast<int>(wide);
    case SG_DTYPE_BF16: {
      std::memcpy(&upper, at, 2);
      const std::uint32_t bits = std::uint32_t{upper} << 16;
      std::memcpy(&wide, &bits, 4);
      return static_cast<int>(wide);
    }
    default: {
      const int magnitude = *at & 0x7f;
      const int value = magnitude == 0 ? 0 : magnitude == 0x3c ? 1 : magnitude == 0x40 ? 2 : magnitude == 0x42 ? 3 : 4;
      return (*at & 0x80) != 0 ? -value : value;
    }
  }
}

// Column-major, with a gap behind each column but the last.
class operand {
 public:
  operand(sg_dtype type, std::int64_t rows, std::int64_t cols, std::int64_t gap, sg_test::flush where)
      : type_(type),
        rows_(rows),
        cols_(cols),
        ld_(rows + gap),
        memory_(static_cast<std::size_t>((ld_ * (cols - 1) + rows) * element_size(type)), where) {}

  // The gaps hold a value that must not enter the result.
  void fill(std::mt19937 &random, int least, int most) {
    std::uniform_int_distribution<int> value(least, most);
    for (std::int64_t i = 0; i < ld_ * (cols_ - 1) + rows_; ++i)
      store(data() + i * element_size(type_), type_, i % ld_ < rows_ ? value(random) : in_gaps);
  }
  int get(std::int64_t i, std::int64_t j) const { return load(data() + (i + j * ld_) * element_size(type_), type_); }
  bool gaps_are_as_filled() const {
    for (std::int64_t j = 0; j + 1 < cols_; ++j)
      for (std::int64_t i = rows_; i < ld_; ++i)
        if (get(i, j) != in_gaps) return false;
    return true;
  }
  std::int64_t ld() const { return ld_; }
  char *data() const { return reinterpret_cast<char *>(memory_.data()); }

 private:
  static constexpr int in_gaps = 4;

  sg_dtype type_;
  std::int64_t rows_, cols_, ld_;
  sg_test::guarded memory_;
};

class cpu_tiles : public testing::Test {
 protected:
  void try_gemm(const types &t, const kernel &panels, const tiling &tiles, std::int64_t m, std::int64_t n,
                std::int64_t k, sg_transpose op_a, sg_transpose op_b, double alpha, double beta) {
    const bool turned_a = op_a != SG_TRANSPOSE_N, turned_b = op_b != SG_TRANSPOSE_N;
    const std::int64_t gap = (m + n + k) % 3;
    const auto where = m % 2 ? sg_test::flush::to_end : sg_test::flush::to_start;
    operand a(t.in, turned_a ? k : m, turned_a ? m : k, gap, where),
        b(t.in, turned_b ? n : k, turned_b ? k : n, gap, where), c(t.out, m, n, gap, where);
    const int least = t.in == SG_DTYPE_I8 ? -128 : -3, most = t.in == SG_DTYPE_I8 ? 127 : 3;
    a.fill(random_, least, most);
    b.fill(random_, least, most);
    c.fill(random_, least, most);
    // Along k, row by row of op(A) and column by column of op(B). Sums of i8 are modulo 2^32.
    std::vector<std::uint32_t> left, right;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t l = 0; l < k; ++l) left.push_back(std::uint32_t(turned_a ? a.get(l, i) : a.get(i, l)));
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t l = 0; l < k; ++l) right.push_back(std::uint32_t(turned_b ? b.get(j, l) : b.get(l, j)));
    std::vector<int> expected;
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < m; ++i) {
        const std::uint32_t sum = std::inner_product(left.begin() + i * k, left.begin() + (i + 1) * k,
                                                     right.begin() + j * k, std::uint32_t{0});
        expected.push_back(
            int(std::uint32_t(int(alpha)) * sum + std::uint32_t(int(beta)) * std::uint32_t(c.get(i, j))));
      }
    const gemm_args p = {.m = m,
                         .n = n,
                         .k = k,
                         .op_a = op_a,
                         .op_b = op_b,
                         .alpha = {alpha, 0},
                         .beta = {beta, 0},
                         .a = a.data(),
                         .b = b.data(),
                         .c = c.data(),
                         .lda = a.ld(),
                         .ldb = b.ld(),
                         .ldc = c.ld()};
    ASSERT_EQ(run_tiles(p, t.in, t.out, panels, tiles, space_), SG_STATUS_OK);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < m; ++i)
        ASSERT_EQ(c.get(i, j), expected[static_cast<std::size_t>(i + j * m)])
            << m << "x" << n << "x" << k << " ops " << op_a << op_b << " beta " << beta << " at " << i << ", " << j;
    ASSERT_TRUE(c.gaps_are_as_filled()) << m << "x" << n << "x" << k;
  }

  // Dimensions around the edges of a tile's rows, of strips and of tiles; depths around those of a row of a tile.
  void try_every_edge(const types &t, const kernel &panels) {
    const tiling small = {.kept = 64, .m = 96, .n = 64, .k = 128};
    const std::int64_t sides[] = {1, 15, 16, 17, 31, 32, 33, 64, 65, 131};
    const std::int64_t depths[] = {1, 2, 3, 4, 5, 31, 32, 33, 63, 64, 65, 127, 128, 129, 300};
    int variant = 0;
    for (const std::int64_t m : sides)
      for (const std::int64_t n : sides)
        for (const std::int64_t k : depths) {
          ++variant;
          try_gemm(t, panels, small, m, n, k, variant % 2 ? SG_TRANSPOSE_N : SG_TRANSPOSE_T,
                   variant / 2 % 2 ? SG_TRANSPOSE_N : SG_TRANSPOSE_T, variant % 5 ? 1 : -2, variant % 3 - 1);
          if (HasFatalFailure()) return;
        }
  }

  // A GEMM too deep for its panels to stay packed.
  void try_deep(const types &t, const kernel &panels) {
    const tiling small = {.kept = 2048, .m = 96, .n = 64, .k = 128};
    try_gemm(t, panels, small, 100, 70, 9000, SG_TRANSPOSE_N, SG_TRANSPOSE_N, 1, 1);
    try_gemm(t, panels, small, 70, 100, 9000, SG_TRANSPOSE_T, SG_TRANSPOSE_T, 1, 0);
  }

  // Sums beyond 2^31.
  void try_wrap(const types &t, const kernel &panels) {
    constexpr std::int64_t m = 3, n = 2, k = 140001;
    const std::vector<std::int8_t> a(m * k, -128), b(k * n, -128);
    std::vector<std::int32_t> c(m * n, -1);
    const gemm_args p = {.m = m,
                         .n = n,
                         .k = k,
                         .alpha = {1, 0},
                         .a = a.data(),
                         .b = b.data(),
                         .c = c.data(),
                         .lda = m,
                         .ldb = k,
                         .ldc = m};
    ASSERT_EQ(run_tiles(p, t.in, t.out, panels, {}, space_), SG_STATUS_OK);
    EXPECT_EQ(c, std::vector<std::int32_t>(m * n, int(std::uint32_t{k} * 16384u)));
  }

  std::mt19937 random_{17};
  workspace space_;
};

constexpr types bf16 = {SG_DTYPE_BF16, SG_DTYPE_F32}, f8 = {SG_DTYPE_F8_E5M2, SG_DTYPE_F32},
                i8 = {SG_DTYPE_I8, SG_DTYPE_I32};

TEST_F(cpu_tiles, in_f32) {
  const kernel f32 = plain_kernel(SG_DTYPE_F32, SG_DTYPE_F32);
  for (const types &t : {types{SG_DTYPE_F32, SG_DTYPE_F32}, bf16, i8}) try_every_edge(t, f32);
  try_deep(i8, f32);
  try_wrap(i8, f32);
}

TEST_F(cpu_tiles, with_mma) {
  const kernel of_bf16 = mma_kernel(SG_DTYPE_BF16, SG_DTYPE_F32), of_i8 = mma_kernel(SG_DTYPE_I8, SG_DTYPE_I32);
  if (!of_bf16 || !of_i8)
    GTEST_SKIP() << "this processor has no AMX, BFMMLA or SMMLA, or the system does not grant AMX";
  for (const types &t : {bf16, f8}) try_every_edge(t, of_bf16);
  try_deep(bf16, of_bf16);
  try_every_edge(i8, of_i8);
  try_deep(i8, of_i8);
  try_wrap(i8, of_i8);
}

}  // namespace
}  // namespace sg::cpu
