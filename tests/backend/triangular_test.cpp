// SPDX-License-Identifier: Apache-2.0
// Triangular solves and products against their definition in extended precision. The unused triangle, a diagonal of
// ones and the gaps hold NaN.
#include "ops/triangular.hpp"

#include <limits>
#include <random>

#include "../reference/triangles.hpp"
#include "gemm_case.hpp"

namespace sg::test {
namespace {

using sg_reference::dense;

constexpr sg_dtype blas_types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_C64, SG_DTYPE_C128};

dense dense_of(host_operand &x) {
  dense all(x.rows, x.cols);
  for (std::int64_t i = 0; i < x.rows; ++i)
    for (std::int64_t j = 0; j < x.cols; ++j) all.at(i, j) = x.get(0, i, j);
  return all;
}

class triangular : public conformance {
 protected:
  void attempt(sg_backend_triangular what, std::int64_t gap);

  stream stream_{dev()};
  std::mt19937_64 random_{42};
};

void triangular::attempt(sg_backend_triangular what, std::int64_t gap) {
  const std::int64_t order = what.side == SG_SIDE_LEFT ? what.m : what.n;
  host_operand a(what.type, order, order, gap, 1), b(what.type, what.m, what.n, 2 * gap, 1);
  a.poison(), b.poison(), a.randomise(random_), b.randomise(random_);
  const real nan = std::numeric_limits<real>::quiet_NaN();
  for (std::int64_t i = 0; i < order; ++i)
    for (std::int64_t j = 0; j < order; ++j) {
      const bool is_used = sg_reference::is_within(what.triangle, i, j);
      // Solutions stay bounded: each row's other elements are less than its diagonal.
      if (is_used && i != j) a.set(0, i, j, a.get(0, i, j) / real(order));
      if (i == j) a.set(0, i, j, a.get(0, i, j) / real(4) + real(2));
      if (!is_used || (i == j && what.diagonal == SG_DIAGONAL_UNIT)) a.set(0, i, j, {nan, nan});
    }
  host_operand before = b;
  memory at_a(dev(), std::int64_t(a.bytes.size())), at_b(dev(), std::int64_t(b.bytes.size()));
  at_a.write(stream_, a.bytes.data()), at_b.write(stream_, b.bytes.data());
  what.a = at_a.data(), what.lda = a.ld, what.b = at_b.data(), what.ldb = b.ld;
  what.header = backend_command<sg_backend_triangular>().header;
  ASSERT_TRUE(dev()->supports(what.header));
  complete(*dev(), stream_, what);
  at_b.read(stream_, b.bytes.data());

  const dense factor = after(of_triangle(dense_of(a), what.triangle, what.diagonal), what.op);
  const dense given = dense_of(before), found = dense_of(b);
  const number alpha{what.alpha.re, sg::is_complex(what.type) ? what.alpha.im : 0};
  const bool solves = what.kind == SG_TRIANGULAR_SOLVE;
  sg_reference::sum_of_products wanted(what.m, what.n);
  if (solves)
    wanted = residual_of_solve(factor, what.side, found, alpha, given);
  else
    what.side == SG_SIDE_LEFT ? wanted.add(alpha, factor, given) : wanted.add(alpha, given, factor);
  const real unit = precision_of(what.type, false).sum;
  for (std::int64_t j = 0; j < what.n; ++j)
    for (std::int64_t i = 0; i < what.m; ++i) {
      const number difference = wanted.value.at(i, j) - (solves ? number(0) : found.at(i, j));
      ASSERT_LE(std::abs(difference), wanted.error(i, j, order, unit))
          << sg::name_of(what.type) << (solves ? " solve" : " product") << " of " << what.m << " x " << what.n
          << " side " << what.side << " triangle " << what.triangle << " op " << what.op << " diagonal "
          << what.diagonal << " gap " << gap << " at " << i << ", " << j;
      before.set(0, i, j, b.get(0, i, j));
    }
  ASSERT_EQ(before.bytes, b.bytes) << "a gap was written";
}

TEST_P(triangular, every_type_and_form) {
  sweep all, few(5);  // of large ones fewer
  const std::pair<std::int64_t, std::int64_t> sizes[] = {{1, 1}, {5, 3}, {33, 17}, {40, 40}, {2, 260}, {260, 2}};
  for (const sg_dtype type : blas_types)
    for (const auto &[m, n] : sizes)
      for (const sg_triangular_kind kind : {SG_TRIANGULAR_SOLVE, SG_TRIANGULAR_MULTIPLY})
        for (const sg_side side : {SG_SIDE_LEFT, SG_SIDE_RIGHT})
          for (const sg_triangle triangle : {SG_TRIANGLE_LOWER, SG_TRIANGLE_UPPER})
            for (const sg_transpose op : {SG_TRANSPOSE_N, SG_TRANSPOSE_T, SG_TRANSPOSE_C})
              for (const sg_diagonal diagonal : {SG_DIAGONAL_STORED, SG_DIAGONAL_UNIT}) {
                if ((op == SG_TRANSPOSE_C && !sg::is_complex(type)) || !(m + n > 200 ? few : all).tries_next())
                  continue;
                sg_backend_triangular what{};
                what.m = m, what.n = n, what.type = type, what.kind = kind, what.side = side, what.triangle = triangle;
                what.op = op, what.diagonal = diagonal, what.alpha = {-0.75, 0.5};
                attempt(what, (m + n) % 3);
                if (HasFailure()) return;
              }
}

SG_CONFORMANCE(triangular);

}  // namespace
}  // namespace sg::test
