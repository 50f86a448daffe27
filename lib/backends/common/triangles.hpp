// SPDX-License-Identifier: Apache-2.0
// The operations of triangular.h and symmetric.h in plain loops, in the operands' type: for devices without a BLAS.
#pragma once

#include <streamgemm/backend.h>

#include <complex>
#include <cstdint>

#include "backends/common/types.hpp"

namespace sg {
inline namespace common {

// Calls body.template operator()<T>() for the number of a type that is_blas_type().
template <class Body>
void with_blas_type(sg_dtype type, Body &&body) {
  switch (type) {
    case SG_DTYPE_F64: return body.template operator()<double>();
    case SG_DTYPE_F32: return body.template operator()<float>();
    case SG_DTYPE_C64: return body.template operator()<std::complex<float>>();
    case SG_DTYPE_C128: return body.template operator()<std::complex<double>>();
    default: return;
  }
}

template <class T>
struct number_parts {
  static T conjugate(T x) noexcept { return x; }
  static T real_only(T x) noexcept { return x; }
  static T of(const sg_scalar &x) noexcept { return static_cast<T>(x.re); }
};
template <class T>
struct number_parts<std::complex<T>> {
  static std::complex<T> conjugate(std::complex<T> x) noexcept { return std::conj(x); }
  static std::complex<T> real_only(std::complex<T> x) noexcept { return x.real(); }
  static std::complex<T> of(const sg_scalar &x) noexcept { return {static_cast<T>(x.re), static_cast<T>(x.im)}; }
};

// Element (i, j) of a column-major matrix after an op.
template <class T>
struct matrix_after {
  const T *data;
  std::int64_t ld;
  sg_transpose op = SG_TRANSPOSE_N;
  T operator()(std::int64_t i, std::int64_t j) const noexcept {
    if (op == SG_TRANSPOSE_N) return data[i + j * ld];
    return op == SG_TRANSPOSE_T ? data[j + i * ld] : number_parts<T>::conjugate(data[j + i * ld]);
  }
};

// Substitution, or a product, for one column of B, or for one row if A is on the right: that is the transposed problem.
template <class T>
void compute_triangular(const sg_backend_triangular &what, const T *a, T *b) {
  const bool is_left = what.side == SG_SIDE_LEFT;
  const std::int64_t order = is_left ? what.m : what.n, count = is_left ? what.n : what.m;
  const std::int64_t step = is_left ? 1 : what.ldb, next = is_left ? what.ldb : 1;
  const matrix_after<T> after{a, what.lda, what.op};
  const auto factor = [&](std::int64_t i, std::int64_t l) { return is_left ? after(i, l) : after(l, i); };
  const bool is_lower = (what.triangle == SG_TRIANGLE_LOWER) == ((what.op == SG_TRANSPOSE_N) == is_left);
  const bool is_unit = what.diagonal == SG_DIAGONAL_UNIT, solves = what.kind == SG_TRIANGULAR_SOLVE;
  const T alpha = number_parts<T>::of(what.alpha);
  const bool upwards =
      is_lower != solves;  // a product needs elements that are not yet replaced, a solve those that are
  for (std::int64_t j = 0; j < count; ++j) {
    T *const x = b + j * next;
    for (std::int64_t done = 0; done < order; ++done) {
      const std::int64_t i = upwards ? order - 1 - done : done;
      const std::int64_t first = is_lower ? 0 : i + 1, end = is_lower ? i : order;
      T sum{};
      for (std::int64_t l = first; l < end; ++l) sum += factor(i, l) * x[l * step];
      T &own = x[i * step];
      if (solves)
        own = is_unit ? alpha * own - sum : (alpha * own - sum) / factor(i, i);
      else
        own = alpha * (sum + (is_unit ? own : factor(i, i) * own));
    }
  }
}

// A symmetric or Hermitian matrix of which one triangle is stored.
template <class T>
struct symmetric_matrix {
  const T *data;
  std::int64_t ld;
  bool is_lower, is_hermitian;
  T operator()(std::int64_t i, std::int64_t j) const noexcept {
    const bool is_stored = is_lower ? i >= j : i <= j;
    const T value = is_stored ? data[i + j * ld] : data[j + i * ld];
    if (!is_hermitian) return value;
    if (i == j) return number_parts<T>::real_only(value);
    return is_stored ? value : number_parts<T>::conjugate(value);
  }
};

template <class T>
void compute_symmetric(const sg_backend_symmetric &what, const T *a, const T *b, T *c) {
  const bool is_product = what.kind == SG_BACKEND_SYMMETRIC_MULTIPLY, is_left = what.side == SG_SIDE_LEFT;
  const bool is_lower = what.triangle == SG_TRIANGLE_LOWER, is_hermitian = what.symmetry == SG_SYMMETRY_HERMITIAN;
  const T alpha = number_parts<T>::of(what.alpha), beta = number_parts<T>::of(what.beta);
  const T mirrored_alpha = is_hermitian ? number_parts<T>::conjugate(alpha) : alpha;
  const symmetric_matrix<T> s{a, what.lda, is_lower, is_hermitian};
  const matrix_after<T> e{a, what.lda, what.op}, f{b, what.ldb, what.op};
  const auto primed = [=](T x) { return is_hermitian ? number_parts<T>::conjugate(x) : x; };
  const auto product = [&](std::int64_t i, std::int64_t j) {
    T sum{}, other{};
    if (is_product) {
      const std::int64_t order = is_left ? what.m : what.n;
      for (std::int64_t l = 0; l < order; ++l)
        sum += is_left ? s(i, l) * b[l + j * what.ldb] : b[i + l * what.ldb] * s(l, j);
      return alpha * sum;
    }
    for (std::int64_t l = 0; l < what.k; ++l) {
      sum += e(i, l) * primed((b ? f : e)(j, l));
      if (b) other += f(i, l) * primed(e(j, l));
    }
    return b ? alpha * sum + mirrored_alpha * other : alpha * sum;
  };
  for (std::int64_t j = 0; j < what.n; ++j) {
    const std::int64_t first = !is_product && is_lower ? j : 0, end = !is_product && !is_lower ? j + 1 : what.m;
    for (std::int64_t i = first; i < end; ++i) {
      T &own = c[i + j * what.ldc];
      T sum = a ? product(i, j) : T{};
      // The imaginary parts of a Hermitian diagonal count as 0, NaN too.
      const bool is_real = !is_product && is_hermitian && i == j;
      if (!is_zero(what.beta)) sum += beta * (is_real ? number_parts<T>::real_only(own) : own);
      own = is_real ? number_parts<T>::real_only(sum) : sum;
    }
  }
}

}  // namespace common
}  // namespace sg
