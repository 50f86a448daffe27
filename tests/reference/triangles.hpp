// SPDX-License-Identifier: Apache-2.0
// Triangular and symmetric matrices by their definitions: whole matrices in extended precision, and plain products.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "numbers.hpp"

namespace sg_reference {

struct dense {
  std::int64_t rows, cols;
  std::vector<number> values;

  dense(std::int64_t of_rows, std::int64_t of_cols)
      : rows(of_rows), cols(of_cols), values(std::size_t(of_rows * of_cols)) {}
  number &at(std::int64_t i, std::int64_t j) { return values[std::size_t(i * cols + j)]; }
  const number &at(std::int64_t i, std::int64_t j) const { return values[std::size_t(i * cols + j)]; }
};

inline bool is_within(sg_triangle triangle, std::int64_t i, std::int64_t j) {
  return triangle == SG_TRIANGLE_LOWER ? i >= j : i <= j;
}

inline dense of_triangle(const dense &a, sg_triangle triangle, sg_diagonal diagonal) {
  dense t(a.rows, a.cols);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < a.cols; ++j) {
      if (is_within(triangle, i, j)) t.at(i, j) = a.at(i, j);
      if (i == j && diagonal == SG_DIAGONAL_UNIT) t.at(i, j) = 1;
    }
  return t;
}

inline dense of_symmetric(const dense &a, sg_triangle triangle, bool is_hermitian) {
  dense s(a.rows, a.cols);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < a.cols; ++j) {
      if (!is_within(triangle, i, j)) continue;
      const number x = i == j && is_hermitian ? a.at(i, j).real() : a.at(i, j);
      s.at(j, i) = is_hermitian ? std::conj(x) : x;
      s.at(i, j) = x;
    }
  return s;
}

inline dense after(const dense &a, sg_transpose op) {
  if (op == SG_TRANSPOSE_N) return a;
  dense t(a.cols, a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < a.cols; ++j) t.at(j, i) = op == SG_TRANSPOSE_C ? std::conj(a.at(i, j)) : a.at(i, j);
  return t;
}

// A sum of products of matrices, with the sums of the products' magnitudes.
struct sum_of_products {
  dense value, magnitude;
  sum_of_products(std::int64_t rows, std::int64_t cols) : value(rows, cols), magnitude(rows, cols) {}

  void add(number factor, const dense &a, const dense &b) {
    for (std::int64_t i = 0; i < a.rows; ++i)
      for (std::int64_t l = 0; l < a.cols; ++l) {
        const number x = factor * a.at(i, l);
        if (x == number(0)) continue;
        const real size = std::fabs(x.real()) + std::fabs(x.imag());
        for (std::int64_t j = 0; j < b.cols;
             ++j) {  // by parts: the operator of complex numbers checks each product for NaN
          const number &y = b.at(l, j);
          value.at(i, j) +=
              number{x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
          magnitude.at(i, j) += size * (std::fabs(y.real()) + std::fabs(y.imag()));
        }
      }
  }
  void add(number factor, const dense &c) {
    for (std::size_t i = 0; i < c.values.size(); ++i) {
      value.values[i] += factor * c.values[i];
      magnitude.values[i] += std::abs(factor) * std::abs(c.values[i]);
    }
  }
  // What rounding allows for sums of so many terms.
  real error(std::int64_t i, std::int64_t j, std::int64_t terms, real unit) const {
    return 4 * real(terms + 4) * unit * magnitude.at(i, j).real();
  }
};

// What a solve must fulfil: op(T) * X - alpha * B, or X * op(T) - alpha * B, which rounding alone makes differ from 0.
inline sum_of_products residual_of_solve(const dense &factor, sg_side side, const dense &x, number alpha,
                                         const dense &b) {
  sum_of_products r(b.rows, b.cols);
  side == SG_SIDE_LEFT ? r.add(1, factor, x) : r.add(1, x, factor);
  r.add(-alpha, b);
  return r;
}

}  // namespace sg_reference
