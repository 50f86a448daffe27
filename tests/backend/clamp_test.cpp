// SPDX-License-Identifier: Apache-2.0
// Clamps and their gradients against the definition; gaps keep their bytes.
#include "ops/clamp.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/dtype.hpp"
#include "gemm_case.hpp"

namespace sg::test {
namespace {

struct clamp_case {
  sg_dtype type;
  std::int64_t rows, cols, gap;
  bool gradient, in_place;  // in place: the result is X
};

class clamp : public conformance {
 protected:
  void attempt(const clamp_case &f, double low, double high);

  stream stream_{dev()};
  std::mt19937_64 random_{42};
};

void clamp::attempt(const clamp_case &f, double low, double high) {
  host_operand x(f.type, f.rows, f.cols, f.gap, 1), dy(f.type, f.rows, f.cols, 2 * f.gap, 1);
  host_operand y(f.type, f.rows, f.cols, f.in_place ? f.gap : f.gap + 1, 1);
  for (host_operand *each : {&x, &dy, &y}) each->poison(), each->randomise(random_);
  constexpr real infinite = std::numeric_limits<real>::infinity(), nan = std::numeric_limits<real>::quiet_NaN();
  const real special[] = {infinite, -infinite, nan, real(low), real(high), -0.0L};
  for (std::int64_t j = 0; j < f.cols; ++j)
    for (std::int64_t i = 0; i < f.rows; ++i)
      if (random_() % 4 == 0) x.set(0, i, j, special[random_() % std::size(special)]);
  host_operand before = f.in_place ? x : y;
  memory at_x(dev(), std::int64_t(x.bytes.size())), at_dy(dev(), std::int64_t(dy.bytes.size()));
  memory at_y(dev(), std::int64_t(y.bytes.size()));
  at_x.write(stream_, x.bytes.data());
  at_dy.write(stream_, dy.bytes.data());
  at_y.write(stream_, y.bytes.data());
  auto what = backend_command<sg_backend_clamp>();
  what.m = f.rows, what.n = f.cols, what.type = f.type, what.low = low, what.high = high;
  what.x = at_x.data(), what.ldx = x.ld;
  if (f.gradient) what.dy = at_dy.data(), what.lddy = dy.ld;
  what.y = (f.in_place ? at_x : at_y).data(), what.ldy = y.ld;
  ASSERT_TRUE(dev()->supports(what.header));
  complete(*dev(), stream_, what);
  (f.in_place ? at_x : at_y).read(stream_, y.bytes.data());
  const auto limit = [&](double of) { return f.type == SG_DTYPE_F64 ? real(of) : real(float(of)); };
  host_operand wanted = before;
  for (std::int64_t j = 0; j < f.cols; ++j)
    for (std::int64_t i = 0; i < f.rows; ++i) {
      const real value = x.get(0, i, j).real();
      const bool is_within = limit(low) <= value && value <= limit(high);
      const real of_value = std::isnan(value) ? value : std::min(std::max(value, limit(low)), limit(high));
      wanted.set(0, i, j, !f.gradient ? of_value : is_within ? dy.get(0, i, j).real() : 0);
      const real found = y.get(0, i, j).real(), same = wanted.get(0, i, j).real();
      ASSERT_TRUE(std::isnan(same) ? std::isnan(found) : found == same)
          << double(found) << " instead of " << double(same) << " for " << double(value) << ": " << sg::name_of(f.type)
          << " " << f.rows << "x" << f.cols << " gap " << f.gap << (f.gradient ? " gradient " : " ") << low << " to "
          << high << " at " << i << ", " << j;
    }
  const auto bytes = std::size_t((y.ld - y.rows) * size_of(f.type));
  for (std::int64_t j = 0; j < y.cols; ++j)
    ASSERT_EQ(0, std::memcmp(before.at(0, y.rows, j), y.at(0, y.rows, j), bytes)) << "a gap was written";
}

TEST_P(clamp, every_type_size_and_limit) {
  sweep all;
  for (const sg_dtype type : {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16})
    for (const auto &[rows, cols] :
         {std::pair<std::int64_t, std::int64_t>{1, 1}, {7, 5}, {64, 9}, {1000, 2}, {4100, 3}})
      for (const std::int64_t gap : {0, 3, 8})
        for (const bool gradient : {false, true})
          for (const bool in_place : {false, true})
            for (const auto &[low, high] : {std::pair{-0.5, 0.25}, {0.1, 0.1}, {0.5, -0.5}, {-HUGE_VAL, 0.0}})
              if (all.tries_next()) attempt({type, rows, cols, gap, gradient, in_place}, low, high);
}

SG_CONFORMANCE(clamp);

}  // namespace
}  // namespace sg::test
