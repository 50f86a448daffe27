// SPDX-License-Identifier: Apache-2.0
#include "cblas_triangles.hpp"

#include <algorithm>
#include <climits>
#include <complex>
#include <initializer_list>

#include "backends/common/triangles.hpp"
#include "backends/cpu/libraries/cblas_arguments.hpp"
#include "backends/cpu/libraries/cblas_library.hpp"

namespace sg::cpu {
namespace {

using lib = cblas_library;

// The routines of a type, as members of the library.
template <class T>
struct routines;
template <>
struct routines<float> {
  static constexpr auto trsm = &lib::strsm, trmm = &lib::strmm;
  static constexpr auto symm = &lib::ssymm, hemm = &lib::ssymm;
  static constexpr auto syrk = &lib::ssyrk;
  static constexpr auto syr2k = &lib::ssyr2k;
};
template <>
struct routines<double> {
  static constexpr auto trsm = &lib::dtrsm, trmm = &lib::dtrmm;
  static constexpr auto symm = &lib::dsymm, hemm = &lib::dsymm;
  static constexpr auto syrk = &lib::dsyrk;
  static constexpr auto syr2k = &lib::dsyr2k;
};
template <>
struct routines<std::complex<float>> {
  using real = float;
  static constexpr auto trsm = &lib::ctrsm, trmm = &lib::ctrmm;
  static constexpr auto symm = &lib::csymm, hemm = &lib::chemm;
  static constexpr auto syrk = &lib::csyrk;
  static constexpr auto herk = &lib::cherk;
  static constexpr auto syr2k = &lib::csyr2k;
  static constexpr auto her2k = &lib::cher2k;
};
template <>
struct routines<std::complex<double>> {
  using real = double;
  static constexpr auto trsm = &lib::ztrsm, trmm = &lib::ztrmm;
  static constexpr auto symm = &lib::zsymm, hemm = &lib::zhemm;
  static constexpr auto syrk = &lib::zsyrk;
  static constexpr auto herk = &lib::zherk;
  static constexpr auto syr2k = &lib::zsyr2k;
  static constexpr auto her2k = &lib::zher2k;
};

bool are_short(std::initializer_list<std::int64_t> sizes) noexcept {
  return cblas() != nullptr && std::all_of(sizes.begin(), sizes.end(), [](std::int64_t x) { return x <= INT_MAX; });
}
constexpr CBLAS_SIDE side_of(sg_side side) noexcept { return side == SG_SIDE_LEFT ? CblasLeft : CblasRight; }
constexpr CBLAS_UPLO uplo_of(sg_triangle triangle) noexcept {
  return triangle == SG_TRIANGLE_LOWER ? CblasLower : CblasUpper;
}

template <class T>
void call_triangular(const lib &library, const sg_backend_triangular &x) noexcept {
  const auto routine = x.kind == SG_TRIANGULAR_SOLVE ? routines<T>::trsm : routines<T>::trmm;
  (library.*routine)(CblasColMajor, side_of(x.side), uplo_of(x.triangle), transpose_of(x.op),
                     x.diagonal == SG_DIAGONAL_UNIT ? CblasUnit : CblasNonUnit, static_cast<int>(x.m),
                     static_cast<int>(x.n), cblas_scalar<T>(x.alpha), static_cast<cblas_pointer<T>>(x.a),
                     static_cast<int>(x.lda), static_cast<cblas_result<T>>(x.b), static_cast<int>(x.ldb));
}

template <class T>
void call_product(const lib &library, const sg_backend_symmetric &x) noexcept {
  const auto routine = x.symmetry == SG_SYMMETRY_HERMITIAN ? routines<T>::hemm : routines<T>::symm;
  (library.*routine)(CblasColMajor, side_of(x.side), uplo_of(x.triangle), static_cast<int>(x.m), static_cast<int>(x.n),
                     cblas_scalar<T>(x.alpha), static_cast<cblas_pointer<T>>(x.a), static_cast<int>(x.lda),
                     static_cast<cblas_pointer<T>>(x.b), static_cast<int>(x.ldb), cblas_scalar<T>(x.beta),
                     static_cast<cblas_result<T>>(x.c), static_cast<int>(x.ldc));
}

// Some versions multiply C by a beta of 0, NaN included.
template <class T>
void clear_triangle(const sg_backend_symmetric &x) noexcept {
  for (std::int64_t j = 0; j < x.n; ++j) {
    T *const column = static_cast<T *>(x.c) + j * x.ldc;
    const bool is_lower = x.triangle == SG_TRIANGLE_LOWER;
    std::fill(column + (is_lower ? j : 0), column + (is_lower ? x.n : j + 1), T{});
  }
}

template <class T>
void call_update(const lib &library, const sg_backend_symmetric &x) noexcept {
  if (is_zero(x.beta)) clear_triangle<T>(x);
  const auto call = [&](auto routine, const auto &alpha, const auto &beta) {
    (library.*routine)(CblasColMajor, uplo_of(x.triangle), transpose_of(x.op), static_cast<int>(x.n),
                       static_cast<int>(x.k), alpha, static_cast<cblas_pointer<T>>(x.a), static_cast<int>(x.lda), beta,
                       static_cast<cblas_result<T>>(x.c), static_cast<int>(x.ldc));
  };
  const auto call_2k = [&](auto routine, const auto &beta) {
    (library.*routine)(CblasColMajor, uplo_of(x.triangle), transpose_of(x.op), static_cast<int>(x.n),
                       static_cast<int>(x.k), cblas_scalar<T>(x.alpha), static_cast<cblas_pointer<T>>(x.a),
                       static_cast<int>(x.lda), static_cast<cblas_pointer<T>>(x.b), static_cast<int>(x.ldb), beta,
                       static_cast<cblas_result<T>>(x.c), static_cast<int>(x.ldc));
  };
  const bool is_2k = x.kind == SG_BACKEND_SYMMETRIC_RANK_2K;
  if constexpr (requires { typename routines<T>::real; }) {
    if (x.symmetry == SG_SYMMETRY_HERMITIAN) {
      using real = typename routines<T>::real;
      const auto alpha = static_cast<real>(x.alpha.re), beta = static_cast<real>(x.beta.re);
      return is_2k ? call_2k(routines<T>::her2k, beta) : call(routines<T>::herk, alpha, beta);
    }
  }
  const cblas_scalar<T> beta(x.beta);
  is_2k ? call_2k(routines<T>::syr2k, beta) : call(routines<T>::syrk, cblas_scalar<T>(x.alpha), beta);
}

double product_of(std::int64_t a, std::int64_t b, std::int64_t c) noexcept {
  return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
}

}  // namespace

bool cblas_takes(const sg_backend_triangular &x) noexcept { return are_short({x.m, x.n, x.lda, x.ldb}); }
bool cblas_takes(const sg_backend_symmetric &x) noexcept {
  return x.a != nullptr && are_short({x.m, x.n, x.k, x.lda, x.ldb, x.ldc});
}

sg_status cblas_triangular(const sg_backend_triangular &x) noexcept {
  const cblas_call call(product_of(x.m, x.n, x.side == SG_SIDE_LEFT ? x.m : x.n));
  if (call.status() != SG_STATUS_OK) return call.status();
  with_blas_type(x.type, [&]<class T>() { call_triangular<T>(*cblas(), x); });
  return SG_STATUS_OK;
}

sg_status cblas_symmetric(const sg_backend_symmetric &x) noexcept {
  const bool is_product = x.kind == SG_BACKEND_SYMMETRIC_MULTIPLY;
  const std::int64_t order = x.side == SG_SIDE_LEFT ? x.m : x.n;
  const cblas_call call(product_of(x.m, x.n, is_product ? order : x.k));
  if (call.status() != SG_STATUS_OK) return call.status();
  with_blas_type(x.type, [&]<class T>() { is_product ? call_product<T>(*cblas(), x) : call_update<T>(*cblas(), x); });
  return SG_STATUS_OK;
}

}  // namespace sg::cpu
