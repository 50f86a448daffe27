// SPDX-License-Identifier: Apache-2.0
// Dot products of rows against sums of higher precision; gaps keep their bytes.
#include "ops/row_dot.hpp"

#include <cmath>
#include <limits>
#include <random>

#include "base/dtype.hpp"
#include "gemm_case.hpp"

namespace sg::test {
namespace {

struct row_dot_case {
  sg_dtype type;
  std::int64_t rows, cols, gap, step;  // step: of the result
  bool by_rows, squares;               // squares: B is A
};

class row_dot : public conformance {
 protected:
  void attempt(const row_dot_case &f);

  stream stream_{dev()};
  std::mt19937_64 random_{42};
};

void row_dot::attempt(const row_dot_case &f) {
  const std::int64_t run = f.by_rows ? f.cols : f.rows, runs = f.by_rows ? f.rows : f.cols;
  host_operand a(f.type, run, runs, f.gap, 1), b(f.type, run, runs, 2 * f.gap, 1), y(f.type, 1, f.rows, f.step - 1, 1);
  for (host_operand *each : {&a, &b, &y}) each->poison(), each->randomise(random_);
  const auto get = [&f](host_operand &x, std::int64_t i, std::int64_t j) {
    return (f.by_rows ? x.get(0, j, i) : x.get(0, i, j)).real();
  };
  host_operand before = y;
  memory at_a(dev(), std::int64_t(a.bytes.size())), at_b(dev(), std::int64_t(b.bytes.size())),
      at_y(dev(), std::int64_t(y.bytes.size()));
  at_a.write(stream_, a.bytes.data()), at_b.write(stream_, b.bytes.data()), at_y.write(stream_, y.bytes.data());
  auto what = backend_command<sg_backend_row_dot>();
  what.rows = f.rows, what.cols = f.cols, what.type = f.type;
  host_operand &second = f.squares ? a : b;
  if (f.cols > 0) {
    what.a = at_a.data(), what.b = f.squares ? at_a.data() : at_b.data();
    what.a_row = f.by_rows ? a.ld : 1, what.a_col = f.by_rows ? 1 : a.ld;
    what.b_row = f.by_rows ? second.ld : 1, what.b_col = f.by_rows ? 1 : second.ld;
  }
  what.y = at_y.data(), what.y_row = y.ld;
  ASSERT_TRUE(dev()->supports(what.header));
  complete(*dev(), stream_, what);
  at_y.read(stream_, y.bytes.data());
  const precision p = precision_of(f.type, false);
  const real unit = f.type == SG_DTYPE_F64 ? std::ldexp(1.0L, -53) : std::ldexp(1.0L, -24);
  for (std::int64_t i = 0; i < f.rows; ++i) {
    real sum = 0, magnitude = 0;
    for (std::int64_t j = 0; j < f.cols; ++j) {
      const real product = get(a, i, j) * get(second, i, j);
      sum += product, magnitude += std::abs(product);
    }
    const real error = real(std::min<std::int64_t>(f.cols, 256)) * unit * magnitude;
    ASSERT_LE(std::abs(y.get(0, 0, i).real() - sum), p.out * std::abs(sum) + (1 + p.out) * error + 3 * p.tiny)
        << sg::name_of(f.type) << " " << f.rows << " x " << f.cols << " gap " << f.gap << " step " << f.step
        << (f.by_rows ? " by rows" : " by columns") << " at " << i;
    before.set(0, 0, i, y.get(0, 0, i));
  }
  ASSERT_EQ(before.bytes, y.bytes) << "a gap was written";
}

TEST_P(row_dot, every_type_size_and_layout) {
  sweep all;
  const std::pair<std::int64_t, std::int64_t> sizes[] = {{1, 1},     {7, 5},    {300, 8},  {33, 9},
                                                         {64, 64},   {5, 257},  {3, 3000}, {2, 5001},
                                                         {1, 40000}, {2000, 3}, {600, 40}, {9, 0}};
  for (const sg_dtype type : {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16})
    for (const auto &[rows, cols] : sizes)
      for (const std::int64_t gap : {0, 3, 8})
        for (const std::int64_t step : {1, 5})
          for (const bool by_rows : {true, false})
            for (const bool squares : {false, true})
              if (all.tries_next()) {
                attempt({type, rows, cols, gap, step, by_rows, squares});
                if (HasFailure()) return;
              }
}

SG_CONFORMANCE(row_dot);

}  // namespace
}  // namespace sg::test
