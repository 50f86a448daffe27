// SPDX-License-Identifier: Apache-2.0
// The operations of convert.h against references of higher precision; gaps keep their bytes.
#include "ops/convert.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/dtype.hpp"
#include "gemm_case.hpp"
#include "ops/dequantize.hpp"

namespace sg::test {
namespace {

constexpr real infinity = std::numeric_limits<real>::infinity();

class convert : public conformance {
 protected:
  template <class Command>
  void enqueue_one(const Command &c) {
    ASSERT_TRUE(dev()->supports(c.header));
    complete(*dev(), stream_, c);
  }
  static void expect_gaps(host_operand &before, host_operand &after) {
    for (std::int64_t c = 0; c < after.cols; ++c)
      ASSERT_EQ(0, std::memcmp(before.at(0, before.rows, c), after.at(0, after.rows, c),
                               std::size_t((after.ld - after.rows) * size_of(after.type))))
          << "a gap was written";
  }

  struct dequantize_case {
    sg_quantization quantization;
    sg_dtype type, scale_type;
    std::int64_t rows, cols, block, gap;
    bool has_zero_points, special_scales = false;
  };
  void try_dequantize(const dequantize_case &f);

  struct cast_case {
    sg_dtype in, out;
    std::int64_t m, n, gap_a, gap_c;
    bool transposes, in_place = false;
  };
  // `value(index)`: of the elements of A, in the order of its columns.
  template <class Value>
  void try_cast(const cast_case &f, Value &&value);

  stream stream_{dev()};
  std::mt19937_64 random_{42};
};

// Rows of the matrices are columns of the host operands.
void convert::try_dequantize(const dequantize_case &f) {
  const bool four_bits = f.quantization == SG_QUANTIZATION_I4;
  host_operand x(SG_DTYPE_I8, four_bits ? f.cols / 2 : f.cols, f.rows, f.gap, 1);
  host_operand scales(f.scale_type, f.cols / f.block, f.rows, f.gap, 1);
  host_operand zeros(SG_DTYPE_I8, f.cols / f.block, f.rows, f.gap, 1), y(f.type, f.cols, f.rows, f.gap, 1);
  x.randomise(random_);
  scales.randomise(random_);
  zeros.randomise(random_);
  if (f.special_scales)
    for (std::int64_t b = 0; b < scales.rows; ++b) {
      const real tiny = f.scale_type == SG_DTYPE_F16 ? 0x1p-24L : 0x1p-126L;
      const real values[] = {0, -0.0L, infinity, -infinity, std::numeric_limits<real>::quiet_NaN(), tiny, 60000, 1};
      scales.set(0, b, 0, values[std::size_t(b) % std::size(values)]);
    }
  host_operand before = y;
  memory at_x(dev(), std::int64_t(x.bytes.size())), at_scales(dev(), std::int64_t(scales.bytes.size()));
  memory at_zeros(dev(), std::int64_t(zeros.bytes.size())), at_y(dev(), std::int64_t(y.bytes.size()));
  at_x.write(stream_, x.bytes.data());
  at_scales.write(stream_, scales.bytes.data());
  at_zeros.write(stream_, zeros.bytes.data());
  at_y.write(stream_, y.bytes.data());
  auto what = backend_command<sg_backend_dequantize>();
  what.rows = f.rows, what.cols = f.cols, what.block_size = f.block;
  what.quantization = f.quantization, what.type = f.type, what.scale_type = f.scale_type;
  what.x = at_x.data(), what.x_row = x.ld;
  what.scales = at_scales.data(), what.scales_row = scales.ld;
  if (f.has_zero_points) what.zero_points = reinterpret_cast<const std::int8_t *>(at_zeros.data());
  what.zero_points_row = zeros.ld;
  what.y = at_y.data(), what.y_row = y.ld;
  enqueue_one(what);
  at_y.read(stream_, y.bytes.data());
  SCOPED_TRACE(testing::Message() << (four_bits ? "i4 to " : "i8 to ") << sg::name_of(f.type) << " by "
                                  << sg::name_of(f.scale_type) << ", " << f.rows << "x" << f.cols << " in blocks of "
                                  << f.block << ", gap " << f.gap);
  for (std::int64_t i = 0; i < f.rows; ++i)
    for (std::int64_t j = 0; j < f.cols; ++j) {
      int value = *reinterpret_cast<const signed char *>(x.at(0, four_bits ? j / 2 : j, i));
      if (four_bits) value = ((j % 2 == 0 ? value : value >> 4) & 15) ^ 8, value -= 8;
      if (f.has_zero_points) value -= int(zeros.get(0, j / f.block, i).real());
      const real exact = value * scales.get(0, j / f.block, i).real(), found = y.get(0, j, i).real();
      // A scale of 16 bits times a value of 9 bits is exact in f32, so there is one rounding.
      const real wanted = rounded(f.type, rounded(SG_DTYPE_F32, exact));
      if (std::isnan(wanted)) {
        ASSERT_TRUE(std::isnan(found)) << i << ", " << j << ": " << double(found);
      } else if (f.scale_type != SG_DTYPE_F32 || f.type == SG_DTYPE_F32 || std::isinf(wanted)) {
        ASSERT_EQ(double(wanted), double(found)) << i << ", " << j;
      } else {  // once or twice
        const real next = precision_of(f.type, false).out * 2 * std::abs(wanted);
        ASSERT_LE(std::abs(found - exact), (next / 2) * 1.0001L + precision_of(f.type, false).tiny)
            << i << ", " << j << ": " << double(found) << " instead of " << double(exact);
      }
    }
  expect_gaps(before, y);
}

template <class Value>
void convert::try_cast(const cast_case &f, Value &&value) {
  host_operand a(f.in, f.transposes ? f.n : f.m, f.transposes ? f.m : f.n, f.gap_a, 1);
  host_operand c(f.out, f.m, f.n, f.gap_c, 1);
  for (std::int64_t col = 0; col < a.cols; ++col)
    for (std::int64_t row = 0; row < a.rows; ++row) a.set(0, row, col, value(col * a.rows + row));
  host_operand before = c;
  if (f.in_place) before.bytes = a.bytes;
  memory at_a(dev(), std::int64_t(a.bytes.size())), at_c(dev(), std::int64_t(c.bytes.size()));
  at_a.write(stream_, a.bytes.data());
  at_c.write(stream_, c.bytes.data());
  auto what = backend_command<sg_backend_convert>();
  what.batch = 1, what.m = f.m, what.n = f.n, what.op = f.transposes ? SG_TRANSPOSE_T : SG_TRANSPOSE_N;
  what.in_type = f.in, what.out_type = f.out;
  what.a = at_a.data(), what.lda = a.ld;
  what.c = f.in_place ? at_a.data() : at_c.data(), what.ldc = c.ld;
  enqueue_one(what);
  (f.in_place ? at_a : at_c).read(stream_, c.bytes.data());
  SCOPED_TRACE(testing::Message() << sg::name_of(f.in) << " to " << sg::name_of(f.out) << ", " << f.m << "x" << f.n
                                  << " gaps " << f.gap_a << ", " << f.gap_c << (f.transposes ? " transposed" : ""));
  for (std::int64_t j = 0; j < f.n; ++j)
    for (std::int64_t i = 0; i < f.m; ++i) {
      const std::int64_t row = f.transposes ? j : i, col = f.transposes ? i : j;
      if (f.in == f.out) {
        ASSERT_EQ(0, std::memcmp(a.at(0, row, col), c.at(0, i, j), std::size_t(size_of(f.in)))) << i << ", " << j;
        continue;
      }
      const real from = a.get(0, row, col).real(), found = c.get(0, i, j).real(), wanted = rounded(f.out, from);
      if (std::isnan(wanted)) {
        ASSERT_TRUE(std::isnan(found)) << i << ", " << j << ": " << double(found);
      } else {
        ASSERT_EQ(double(wanted), double(found)) << i << ", " << j << ", from " << double(from);
        ASSERT_EQ(std::signbit(wanted), std::signbit(found)) << i << ", " << j << ", from " << double(from);
      }
    }
  expect_gaps(before, c);
}

constexpr sg_dtype real_types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};

TEST_P(convert, cast_every_type_and_form) {
  constexpr std::int64_t sizes[][2] = {{1, 1},   {7, 5},    {1, 70},   {70, 1},  {64, 64},
                                       {65, 33}, {1300, 3}, {3, 1300}, {160, 96}};
  const auto value = [&](std::int64_t) {
    const real unit = std::uniform_real_distribution<double>(-1, 1)(random_);
    return std::ldexp(unit, std::uniform_int_distribution<int>(-20, 15)(random_));
  };
  sweep all;
  for (const sg_dtype in : real_types)
    for (const sg_dtype out : real_types)
      for (const auto &size : sizes)
        for (const bool transposes : {false, true})
          for (const std::int64_t gap : {0, 3, 8}) {
            if (!all.tries_next()) continue;
            try_cast({in, out, size[0], size[1], gap, gap, transposes}, value);
            try_cast({in, out, size[0], size[1], gap, gap + 1, transposes}, value);
            if (!transposes && size_of(in) == size_of(out))
              try_cast({in, out, size[0], size[1], gap, gap, false, true}, value);
          }
}

// Ties of the short formats, numbers just beside them that only f64 tells apart, and the ends of their ranges.
TEST_P(convert, casts_round_once) {
  std::vector<real> values = {0,         -0.0L,     infinity,  -infinity, std::numeric_limits<real>::quiet_NaN(),
                              65504,     65519.99L, 65520,     3.38e38L,  3.3961e38L,
                              3.4e38L,   1e300L,    -1e300L,   1e-300L,   -1e-300L,
                              0x1p-149L, 0x1p-150L, 0x1p-133L, 0x1p-134L, 0x1p-24L,
                              0x1p-25L,  0x1p-26L};
  for (const int bits : {8, 11, 24})
    for (const int exponent : {-130, -126, -24, -15, -14, -3, 0, 1, 15, 100})
      for (const real fraction : {0x1p0L, 0x1.5p0L, 0x1.fffffep0L})
        for (const real beside : {0.0L, 0x1p-30L, -0x1p-30L, 0x1p-50L, -0x1p-50L})
          for (const real sign : {1.0L, -1.0L}) {
            const real start = std::floor(std::ldexp(fraction, bits - 1)), tie = std::ldexp(start + 0.5L, 1 - bits);
            values.push_back(sign * std::ldexp(tie * (1 + beside), exponent));
            values.push_back(sign * std::ldexp(std::ldexp(start + 1.5L, 1 - bits) * (1 + beside), exponent));
          }
  const auto value = [&](std::int64_t index) { return values[std::size_t(index) % values.size()]; };
  for (const sg_dtype in : real_types)
    for (const sg_dtype out : real_types)
      for (const bool transposes : {false, true}) try_cast({in, out, 50, 41, 0, 0, transposes}, value);
}

constexpr sg_quantization quantizations[] = {SG_QUANTIZATION_I8, SG_QUANTIZATION_I4};
constexpr sg_dtype short_types[] = {SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};

TEST_P(convert, dequantize_every_type_and_form) {
  // Rows, columns and block: whole and cut packs of a thread, steps of a row, blocks that are no power of two.
  constexpr std::int64_t sizes[][3] = {{1, 2, 2},      {3, 32, 32},     {5, 64, 32},  {2, 4096, 64},
                                       {7, 96, 48},    {4, 60, 6},      {3, 1030, 2}, {2, 4116, 4116},
                                       {300, 128, 64}, {1, 8192, 8192}, {2, 520, 40}, {1, 2064, 1032}};
  sweep all;
  for (const sg_quantization quantization : quantizations)
    for (const sg_dtype type : short_types)
      for (const sg_dtype scale_type : short_types)
        for (const auto &size : sizes)
          for (const std::int64_t gap : {0, 1, 3, 16})
            for (const bool has_zero_points : {false, true})
              if (all.tries_next())
                try_dequantize({quantization, type, scale_type, size[0], size[1], size[2], gap, has_zero_points});
}

TEST_P(convert, dequantize_by_special_scales) {
  for (const sg_quantization quantization : quantizations)
    for (const sg_dtype type : short_types)
      for (const sg_dtype scale_type : short_types)
        for (const bool has_zero_points : {false, true})
          try_dequantize({quantization, type, scale_type, 1, 512, 32, 0, has_zero_points, true});
}

TEST_P(convert, types_that_no_device_dequantizes) {
  auto what = backend_command<sg_backend_dequantize>();
  what.quantization = SG_QUANTIZATION_I8, what.type = what.scale_type = SG_DTYPE_F32;
  EXPECT_TRUE(dev()->supports(what.header));
  for (const sg_dtype type : {SG_DTYPE_F64, SG_DTYPE_I8, SG_DTYPE_I32, SG_DTYPE_C64, SG_DTYPE_F8_E4M3}) {
    auto other = what;
    other.type = type;
    EXPECT_FALSE(dev()->supports(other.header)) << sg::name_of(type);
    other = what;
    other.scale_type = type;
    EXPECT_FALSE(dev()->supports(other.header)) << sg::name_of(type);
  }
  what.quantization = sg_quantization(3);
  EXPECT_FALSE(dev()->supports(what.header));
}

// Each item like a matrix of its own; the columns of f32 are divided before the one rounding, but not by 0.
TEST_P(convert, items_and_divisors) {
  constexpr std::int64_t m = 37, n = 5, items = 3;
  for (const sg_dtype out : {SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16})
    for (const bool divides : {false, true})
      for (const bool transposes : {false, true}) {
        if (divides && transposes) continue;
        host_operand a(SG_DTYPE_F32, transposes ? n : m, transposes ? m : n, 3, items), c(out, m, n, 1, items);
        a.randomise(random_);
        std::vector<float> divisors(std::size_t(n * items));
        for (std::size_t i = 0; i < divisors.size(); ++i) divisors[i] = i == 4 ? 0 : 0.5f + float(i) / 3;
        host_operand before = c;
        memory at_a(dev(), std::int64_t(a.bytes.size())), at_c(dev(), std::int64_t(c.bytes.size())),
            at_divisors(dev(), std::int64_t(divisors.size() * sizeof(float)));
        at_a.write(stream_, a.bytes.data()), at_c.write(stream_, c.bytes.data());
        at_divisors.write(stream_, divisors.data());
        auto what = backend_command<sg_backend_convert>();
        what.m = m, what.n = n, what.op = transposes ? SG_TRANSPOSE_T : SG_TRANSPOSE_N, what.batch = items;
        what.in_type = a.type, what.out_type = out;
        what.a = at_a.data(), what.lda = a.ld, what.stride_a = a.item_elements();
        what.c = at_c.data(), what.ldc = c.ld, what.stride_c = c.item_elements();
        if (divides) what.divisors = reinterpret_cast<const float *>(at_divisors.data());
        enqueue_one(what);
        at_c.read(stream_, c.bytes.data());
        expect_gaps(before, c);
        for (std::int64_t item = 0; item < items; ++item)
          for (std::int64_t j = 0; j < n; ++j)
            for (std::int64_t i = 0; i < m; ++i) {
              const auto from = float((transposes ? a.get(item, j, i) : a.get(item, i, j)).real());
              const float divisor =
                  divides && divisors[std::size_t(item * n + j)] != 0 ? divisors[std::size_t(item * n + j)] : 1;
              ASSERT_EQ(rounded(out, from / divisor), c.get(item, i, j).real())
                  << sg::name_of(out) << ", item " << item << ", element " << i << ", " << j;
            }
      }
  auto what = backend_command<sg_backend_convert>();
  const float divisor = 2;
  what.m = what.n = what.batch = 1, what.divisors = &divisor, what.out_type = SG_DTYPE_F16, what.in_type = SG_DTYPE_F64;
  EXPECT_FALSE(dev()->supports(what.header));
}

TEST_P(convert, types_that_no_device_casts) {
  for (const sg_dtype type : {SG_DTYPE_I8, SG_DTYPE_I32, SG_DTYPE_C64, SG_DTYPE_C128, SG_DTYPE_F8_E4M3}) {
    auto what = backend_command<sg_backend_convert>();
    what.in_type = type, what.out_type = SG_DTYPE_F32;
    EXPECT_FALSE(dev()->supports(what.header)) << sg::name_of(type);
    what.in_type = SG_DTYPE_F32, what.out_type = type;
    EXPECT_FALSE(dev()->supports(what.header)) << sg::name_of(type);
  }
}

SG_CONFORMANCE(convert);

}  // namespace
}  // namespace sg::test
