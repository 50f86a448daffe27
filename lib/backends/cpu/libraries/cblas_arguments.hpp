// SPDX-License-Identifier: Apache-2.0
// Arguments as CBLAS takes them.
#pragma once

#include <cblas.h>
#include <streamgemm/types.h>

#include <complex>
#include <type_traits>

namespace sg::cpu {

constexpr CBLAS_TRANSPOSE transpose_of(sg_transpose op) noexcept {
  return op == SG_TRANSPOSE_N ? CblasNoTrans : op == SG_TRANSPOSE_T ? CblasTrans : CblasConjTrans;
}

// A scalar in CBLAS's form: by value, complex ones by address.
template <class T>
struct cblas_scalar {
  explicit cblas_scalar(const sg_scalar &x) noexcept : value(static_cast<T>(x.re)) {}
  operator T() const noexcept { return value; }  // NOLINT: an argument of CBLAS
  T value;
};
template <class T>
struct cblas_scalar<std::complex<T>> {
  explicit cblas_scalar(const sg_scalar &x) noexcept : value(static_cast<T>(x.re), static_cast<T>(x.im)) {}
  operator const void *() const noexcept { return &value; }  // NOLINT: likewise
  std::complex<T> value;
};

template <class T>
using cblas_pointer = std::conditional_t<std::is_floating_point_v<T>, const T *, const void *>;
template <class T>
using cblas_result = std::conditional_t<std::is_floating_point_v<T>, T *, void *>;

}  // namespace sg::cpu
