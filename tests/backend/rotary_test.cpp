// SPDX-License-Identifier: Apache-2.0
// Rotary embedding against a reference of higher precision; gaps keep their bytes.
#include "ops/rotary.hpp"

#include <cmath>
#include <cstring>
#include <random>

#include "base/dtype.hpp"
#include "gemm_case.hpp"

namespace sg::test {
namespace {

struct rotary_case {
  sg_dtype type;
  std::int64_t rows, heads, head_size, rotated_size, gap = 0;
  sg_rotary_pairs pairs = SG_ROTARY_HALVES;
  bool inverse = false, in_place = false;
  sg_dtype table_type = sg_dtype(0);  // 0: no tables
  std::int64_t first_position = 0, first_row = 0, sequence_length = 1 << 30;
  double theta = 10000;
};

class rotary : public conformance {
 protected:
  void attempt(const rotary_case &f);

  stream stream_{dev()};
  std::mt19937_64 random_{42};
};

// Rows of the matrices are columns of the host operands.
void rotary::attempt(const rotary_case &f) {
  const std::int64_t cols = f.heads * f.head_size, half = f.rotated_size / 2;
  const bool has_tables = f.table_type != 0;
  const auto position = [&](std::int64_t i) { return f.first_position + (f.first_row + i) % f.sequence_length; };
  std::int64_t positions = 1;
  for (std::int64_t i = 0; has_tables && i < f.rows; ++i) positions = std::max(positions, position(i) + 1);
  const sg_dtype table_type = has_tables ? f.table_type : f.type;
  host_operand x(f.type, cols, f.rows, f.gap, 1), y(f.type, cols, f.rows, f.in_place ? f.gap : f.gap + 1, 1);
  host_operand cos(table_type, half, positions, f.gap, 1), sin(table_type, half, positions, 2 * f.gap, 1);
  for (host_operand *each : {&x, &cos, &sin}) each->randomise(random_);
  host_operand before = f.in_place ? x : y;
  memory at_x(dev(), std::int64_t(x.bytes.size())), at_y(dev(), std::int64_t(y.bytes.size()));
  memory at_cos(dev(), std::int64_t(cos.bytes.size())), at_sin(dev(), std::int64_t(sin.bytes.size()));
  at_x.write(stream_, x.bytes.data());
  at_y.write(stream_, y.bytes.data());
  at_cos.write(stream_, cos.bytes.data());
  at_sin.write(stream_, sin.bytes.data());
  auto what = backend_command<sg_backend_rotary>();
  what.rows = f.rows, what.cols = cols, what.head_size = f.head_size, what.rotated_size = f.rotated_size;
  what.first_position = f.first_position, what.first_row = f.first_row, what.sequence_length = f.sequence_length;
  what.theta = f.theta, what.type = f.type, what.table_type = table_type;
  what.pairs = f.pairs, what.inverse = f.inverse;
  what.x = at_x.data(), what.x_row = x.ld;
  what.y = f.in_place ? at_x.data() : at_y.data(), what.y_row = y.ld;
  if (has_tables) what.cos = at_cos.data(), what.cos_row = cos.ld, what.sin = at_sin.data(), what.sin_row = sin.ld;
  ASSERT_TRUE(dev()->supports(what.header));
  complete(*dev(), stream_, what);
  (f.in_place ? at_x : at_y).read(stream_, y.bytes.data());
  SCOPED_TRACE(testing::Message() << sg::name_of(f.type) << ", " << f.rows << " rows of " << f.heads << " heads of "
                                  << f.head_size << ", " << f.rotated_size << " rotated, pairs " << int{f.pairs}
                                  << ", tables " << int{f.table_type} << ", position " << f.first_position);
  const precision p = precision_of(f.type, false);
  for (std::int64_t i = 0; i < f.rows; ++i)
    for (std::int64_t col = 0; col < cols; ++col) {
      const std::int64_t head = col / f.head_size * f.head_size, in_head = col % f.head_size;
      const real found = y.get(0, col, i).real();
      if (in_head >= f.rotated_size) {
        ASSERT_EQ(double(x.get(0, col, i).real()), double(found)) << "not rotated: " << i << ", " << col;
        continue;
      }
      const bool halves = f.pairs == SG_ROTARY_HALVES, is_first = halves ? in_head < half : in_head % 2 == 0;
      const std::int64_t pair = halves ? in_head % half : in_head / 2;
      const real a = x.get(0, head + (halves ? pair : 2 * pair), i).real();
      const real b = x.get(0, head + (halves ? pair + half : 2 * pair + 1), i).real();
      const real angle = position(i) * std::pow(real(f.theta), -real(2 * pair) / real(f.rotated_size));
      const real c = has_tables ? cos.get(0, pair, position(i)).real() : std::cos(angle);
      const real s = (has_tables ? sin.get(0, pair, position(i)).real() : std::sin(angle)) * (f.inverse ? -1 : 1);
      const real wanted = is_first ? a * c - b * s : a * s + b * c;
      const real of_angle = has_tables ? 0 : 8 * std::ldexp(angle, -53) + 4 * p.sum;
      const real error = (std::abs(a) + std::abs(b)) * (of_angle + 2 * p.sum);
      ASSERT_LE(std::abs(found - wanted), p.out * std::abs(wanted) + (1 + p.out) * error + p.tiny)
          << i << ", " << col << ": " << double(found) << " instead of " << double(wanted);
    }
  for (std::int64_t i = 0; i < f.rows; ++i)
    ASSERT_EQ(0, std::memcmp(before.at(0, cols, i), y.at(0, cols, i), std::size_t((y.ld - cols) * size_of(f.type))))
        << "a gap was written";
}

constexpr sg_dtype types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};
constexpr sg_rotary_pairs all_pairs_of_heads[] = {SG_ROTARY_HALVES, SG_ROTARY_INTERLEAVED};

TEST_P(rotary, every_type_and_form) {
  constexpr std::int64_t sizes[][4] = {
      {1, 1, 2, 2}, {5, 3, 16, 16}, {33, 2, 10, 6}, {3, 40, 64, 64}, {300, 1, 128, 32}};
  sweep all;
  for (const sg_dtype type : types)
    for (const sg_rotary_pairs pairs : all_pairs_of_heads)
      for (const bool inverse : {false, true})
        for (const bool in_place : {false, true})
          for (const std::int64_t gap : {0, 3})
            for (const bool tables : {false, true})
              for (const auto &size : sizes) {
                if (!all.tries_next()) continue;
                rotary_case f{type, size[0], size[1], size[2], size[3], gap, pairs, inverse, in_place};
                if (tables) f.table_type = type;
                attempt(f);
                if (tables && (type == SG_DTYPE_F16 || type == SG_DTYPE_BF16)) {
                  f.table_type = SG_DTYPE_F32;
                  attempt(f);
                }
              }
}

TEST_P(rotary, positions_begin_again_with_each_sequence) {
  for (const sg_dtype type : types)
    for (const bool tables : {false, true})
      for (const std::int64_t first_row : {0, 4, 1000}) {
        rotary_case f{type, 25, 2, 8, 8};
        if (tables) f.table_type = type;
        f.sequence_length = 7, f.first_position = 3, f.first_row = first_row;
        attempt(f);
      }
}

TEST_P(rotary, high_positions_and_other_bases) {
  for (const sg_dtype type : types)
    for (const double theta : {500000.0, 0.5, 1.0})
      for (const std::int64_t position : {1000, 131072, 100000000}) {
        rotary_case f{type, 4, 1, 64, 64};
        f.theta = theta, f.first_position = position;
        attempt(f);
      }
}

TEST_P(rotary, types_that_no_device_has) {
  auto what = backend_command<sg_backend_rotary>();
  what.type = SG_DTYPE_F16, what.table_type = SG_DTYPE_F32;
  EXPECT_TRUE(dev()->supports(what.header));
  what.type = SG_DTYPE_F64;
  EXPECT_FALSE(dev()->supports(what.header));
  what.type = SG_DTYPE_BF16, what.table_type = SG_DTYPE_F16;
  EXPECT_FALSE(dev()->supports(what.header));
  what.type = what.table_type = SG_DTYPE_C64;
  EXPECT_FALSE(dev()->supports(what.header));
  what.type = what.table_type = SG_DTYPE_F32, what.pairs = sg_rotary_pairs(2);
  EXPECT_FALSE(dev()->supports(what.header));
}

SG_CONFORMANCE(rotary);

}  // namespace
}  // namespace sg::test
