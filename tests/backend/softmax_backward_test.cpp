// SPDX-License-Identifier: Apache-2.0
// The gradient of a softmax against sums of higher precision; gaps keep their bytes.
#include "ops/softmax_backward.hpp"

#include <cmath>
#include <cstring>
#include <random>

#include "base/dtype.hpp"
#include "gemm_case.hpp"

namespace sg::test {
namespace {

class softmax_backward : public conformance {
 protected:
  void attempt(sg_dtype type, bool wide, std::int64_t rows, std::int64_t cols, std::int64_t gap, bool in_place);

  stream stream_{dev()};
  std::mt19937_64 random_{7};
};

void softmax_backward::attempt(sg_dtype type, bool wide, std::int64_t rows, std::int64_t cols, std::int64_t gap,
                               bool in_place) {
  host_operand y(type, cols, rows, gap, 1), dy(wide ? accumulator_of(type) : type, cols, rows, 2 * gap, 1),
      dx(type, cols, rows, in_place ? gap : gap / 2, 1);
  for (host_operand *each : {&y, &dy, &dx}) each->poison(), each->randomise(random_);
  host_operand given = y, before = in_place ? y : dx;
  memory at_y(dev(), std::int64_t(y.bytes.size())), at_dy(dev(), std::int64_t(dy.bytes.size())),
      at_dx(dev(), std::int64_t(dx.bytes.size()));
  at_y.write(stream_, y.bytes.data()), at_dy.write(stream_, dy.bytes.data()), at_dx.write(stream_, dx.bytes.data());
  auto what = backend_command<sg_backend_softmax_backward>();
  what.rows = rows, what.cols = cols, what.type = type, what.dy_type = dy.type;
  what.y = at_y.data(), what.y_row = y.ld, what.dy = at_dy.data(), what.dy_row = dy.ld;
  what.dx = in_place ? at_y.data() : at_dx.data(), what.dx_row = dx.ld;
  ASSERT_TRUE(dev()->supports(what.header));
  complete(*dev(), stream_, what);
  in_place ? at_y.read(stream_, dx.bytes.data()) : at_dx.read(stream_, dx.bytes.data());
  const precision p = precision_of(type, false);
  const real unit = type == SG_DTYPE_F64 ? std::ldexp(1.0L, -53) : std::ldexp(1.0L, -24);
  for (std::int64_t i = 0; i < rows; ++i) {
    real sum = 0, magnitude = 0;
    for (std::int64_t j = 0; j < cols; ++j) {
      const real product = given.get(0, j, i).real() * dy.get(0, j, i).real();
      sum += product, magnitude += std::abs(product);
    }
    for (std::int64_t j = 0; j < cols; ++j) {
      const real weight = given.get(0, j, i).real(), wanted = weight * (dy.get(0, j, i).real() - sum);
      const real error = std::abs(weight) * unit * (real(cols + 4) * magnitude + 4);
      ASSERT_LE(std::abs(dx.get(0, j, i).real() - wanted), p.out * std::abs(wanted) + (1 + p.out) * error + 3 * p.tiny)
          << sg::name_of(type) << " " << rows << " x " << cols << " at " << i << ", " << j;
    }
    ASSERT_EQ(0, std::memcmp(before.at(0, cols, i), dx.at(0, cols, i), std::size_t((dx.ld - cols) * size_of(type))))
        << "a gap was written";
  }
}

TEST_P(softmax_backward, every_type_and_size) {
  sweep all;
  for (const sg_dtype type : {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16})
    for (const bool wide : {false, true})
      for (const std::int64_t rows : {1, 7, 300})
        for (const std::int64_t cols : {1, 5, 16, 64, 257, 3000})
          for (const std::int64_t gap : {0, 4})
            for (const bool in_place : {false, true})
              if (all.tries_next() && rows * cols <= 100'000) {
                attempt(type, wide, rows, cols, gap, in_place);
                if (HasFailure()) return;
              }
}

SG_CONFORMANCE(softmax_backward);

}  // namespace
}  // namespace sg::test
