// SPDX-License-Identifier: Apache-2.0
// Products with symmetric matrices, and updates of them, against their definition in extended precision. Unused
// triangles and gaps hold NaN, and keep their bytes.
#include "ops/symmetric.hpp"

#include <limits>
#include <random>

#include "../reference/triangles.hpp"
#include "gemm_case.hpp"

namespace sg::test {
namespace {

using sg_reference::dense;

dense all_of(host_operand &x) {
  dense all(x.rows, x.cols);
  for (std::int64_t i = 0; i < x.rows; ++i)
    for (std::int64_t j = 0; j < x.cols; ++j) all.at(i, j) = x.get(0, i, j);
  return all;
}

void spoil_other_triangle(host_operand &x, sg_triangle triangle) {
  const real nan = std::numeric_limits<real>::quiet_NaN();
  for (std::int64_t i = 0; i < x.rows; ++i)
    for (std::int64_t j = 0; j < x.cols; ++j)
      if (!sg_reference::is_within(triangle, i, j)) x.set(0, i, j, {nan, nan});
}

class symmetric : public conformance {
 protected:
  void attempt(sg_backend_symmetric what, std::int64_t gap);

  stream stream_{dev()};
  std::mt19937_64 random_{42};
};

void symmetric::attempt(sg_backend_symmetric what, std::int64_t gap) {
  const bool is_product = what.kind == SG_BACKEND_SYMMETRIC_MULTIPLY;
  const bool has_b = what.kind != SG_BACKEND_SYMMETRIC_RANK_K, is_hermitian = what.symmetry == SG_SYMMETRY_HERMITIAN;
  const std::int64_t order = what.side == SG_SIDE_LEFT ? what.m : what.n;
  const std::int64_t rows = is_product                  ? order
                            : what.op == SG_TRANSPOSE_N ? what.n
                                                        : what.k,
                     cols = is_product                  ? order
                            : what.op == SG_TRANSPOSE_N ? what.k
                                                        : what.n;
  host_operand a(what.type, rows, cols, gap, 1);
  host_operand b(what.type, is_product ? what.m : rows, is_product ? what.n : cols, gap + 1, 1);
  host_operand c(what.type, what.m, what.n, 2 * gap, 1);
  for (host_operand *each : {&a, &b, &c}) each->poison(), each->randomise(random_);
  spoil_other_triangle(is_product ? a : c, what.triangle);
  const bool reads_c = what.beta.re != 0 || what.beta.im != 0;
  if (!reads_c) c.poison();
  host_operand real_c = c;  // imaginary parts of a Hermitian diagonal count as 0
  if (!is_product && is_hermitian && reads_c && sg::is_complex(what.type))
    for (std::int64_t i = 0; i < what.n; ++i) {
      const real own = c.get(0, i, i).real();
      real_c.set(0, i, i, own);
      c.set(0, i, i, {own, std::numeric_limits<real>::quiet_NaN()});
    }
  host_operand before = c;
  memory at_a(dev(), std::int64_t(a.bytes.size())), at_b(dev(), std::int64_t(b.bytes.size())),
      at_c(dev(), std::int64_t(c.bytes.size()));
  at_a.write(stream_, a.bytes.data()), at_b.write(stream_, b.bytes.data()), at_c.write(stream_, c.bytes.data());
  const bool multiplies = is_product || what.k > 0;
  if (multiplies) what.a = at_a.data(), what.lda = a.ld;
  if (multiplies && has_b) what.b = at_b.data(), what.ldb = b.ld;
  what.c = at_c.data(), what.ldc = c.ld;
  what.header = backend_command<sg_backend_symmetric>().header;
  ASSERT_TRUE(dev()->supports(what.header));
  complete(*dev(), stream_, what);
  at_c.read(stream_, c.bytes.data());

  const auto part = [&](const sg_scalar &x) { return number{x.re, sg::is_complex(what.type) ? x.im : 0}; };
  const number alpha = part(what.alpha);
  sg_reference::sum_of_products wanted(what.m, what.n);
  if (is_product) {
    const dense s = of_symmetric(all_of(a), what.triangle, is_hermitian), other = all_of(b);
    what.side == SG_SIDE_LEFT ? wanted.add(alpha, s, other) : wanted.add(alpha, other, s);
  } else if (what.k > 0) {
    const sg_transpose primed = is_hermitian ? SG_TRANSPOSE_C : SG_TRANSPOSE_T;
    const dense x = after(all_of(a), what.op), y = has_b ? after(all_of(b), what.op) : x;
    wanted.add(alpha, x, after(y, primed));
    if (has_b) wanted.add(is_hermitian ? std::conj(alpha) : alpha, y, after(x, primed));
  }
  if (reads_c) wanted.add(part(what.beta), all_of(real_c));
  const real unit = precision_of(what.type, false).sum;
  for (std::int64_t j = 0; j < what.n; ++j)
    for (std::int64_t i = 0; i < what.m; ++i) {
      if (!is_product && !sg_reference::is_within(what.triangle, i, j)) continue;
      number value = wanted.value.at(i, j);
      if (!is_product && is_hermitian && i == j) value = value.real();
      ASSERT_LE(std::abs(c.get(0, i, j) - value), wanted.error(i, j, is_product ? order : 2 * what.k, unit))
          << sg::name_of(what.type) << " kind " << what.kind << " of " << what.m << " x " << what.n << " x " << what.k
          << " symmetry " << what.symmetry << " side " << what.side << " triangle " << what.triangle << " op "
          << what.op << " gap " << gap << " at " << i << ", " << j;
      if (!is_product && is_hermitian && i == j) {
        ASSERT_EQ(0, c.get(0, i, j).imag()) << "a diagonal is not real";
      }
      before.set(0, i, j, c.get(0, i, j));
    }
  ASSERT_EQ(before.bytes, c.bytes) << "a gap or the other triangle was written";
}

constexpr sg_dtype number_types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_C64, SG_DTYPE_C128};
constexpr sg_scalar betas[] = {{0, 0}, {1, 0}, {-0.5, 0.25}};

TEST_P(symmetric, products_of_every_type_and_form) {
  sweep all, few(5);  // of large ones fewer
  const std::pair<std::int64_t, std::int64_t> sizes[] = {{1, 1}, {5, 3}, {33, 17}, {40, 40}, {2, 260}, {260, 2}};
  for (const sg_dtype type : number_types)
    for (const auto &[m, n] : sizes)
      for (const sg_symmetry symmetry : {SG_SYMMETRY_SYMMETRIC, SG_SYMMETRY_HERMITIAN})
        for (const sg_side side : {SG_SIDE_LEFT, SG_SIDE_RIGHT})
          for (const sg_triangle triangle : {SG_TRIANGLE_LOWER, SG_TRIANGLE_UPPER})
            for (const sg_scalar &beta : betas) {
              if ((symmetry == SG_SYMMETRY_HERMITIAN && !sg::is_complex(type)) ||
                  !(m + n > 200 ? few : all).tries_next())
                continue;
              sg_backend_symmetric what{};
              what.m = m, what.n = n, what.type = type, what.symmetry = symmetry, what.side = side;
              what.triangle = triangle, what.alpha = {-0.75, 0.5}, what.beta = beta;
              attempt(what, (m + n) % 3);
              if (HasFailure()) return;
            }
}

TEST_P(symmetric, updates_of_every_type_and_form) {
  sweep all, few(5);  // of large ones fewer
  const std::pair<std::int64_t, std::int64_t> sizes[] = {{1, 1}, {5, 3}, {33, 17}, {3, 90}, {260, 2}, {9, 0}};
  for (const sg_dtype type : number_types)
    for (const auto &[n, k] : sizes)
      for (const sg_symmetry symmetry : {SG_SYMMETRY_SYMMETRIC, SG_SYMMETRY_HERMITIAN})
        for (const sg_backend_symmetric_kind kind : {SG_BACKEND_SYMMETRIC_RANK_K, SG_BACKEND_SYMMETRIC_RANK_2K})
          for (const sg_triangle triangle : {SG_TRIANGLE_LOWER, SG_TRIANGLE_UPPER})
            for (const bool transposes : {false, true})
              for (const sg_scalar &beta : betas) {
                const bool is_hermitian = symmetry == SG_SYMMETRY_HERMITIAN;
                if ((is_hermitian && !sg::is_complex(type)) || !(n > 200 ? few : all).tries_next()) continue;
                sg_backend_symmetric what{};
                what.kind = kind, what.m = what.n = n, what.k = k, what.type = type, what.symmetry = symmetry;
                what.triangle = triangle, what.op = !transposes    ? SG_TRANSPOSE_N
                                                    : is_hermitian ? SG_TRANSPOSE_C
                                                                   : SG_TRANSPOSE_T;
                what.alpha = {k > 0 ? -0.75 : 0,
                              k > 0 && !(is_hermitian && kind == SG_BACKEND_SYMMETRIC_RANK_K) ? 0.5 : 0};
                what.beta = {beta.re, is_hermitian ? 0 : beta.im};
                attempt(what, (n + k) % 3);
                if (HasFailure()) return;
              }
}

SG_CONFORMANCE(symmetric);

}  // namespace
}  // namespace sg::test
