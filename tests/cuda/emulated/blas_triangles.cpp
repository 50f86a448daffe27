// SPDX-License-Identifier: Apache-2.0
// cuBLAS's routines for triangular and symmetric matrices on the emulated GPU. Misaligned operands are refused, as are
// leading dimensions that are too small.
#include <streamgemm/backend.h>

#include "backends/sim/symmetric.hpp"
#include "backends/sim/triangular.hpp"
#include "blas_context.hpp"
#include "blas_values.hpp"

namespace {

template <class T>
constexpr sg_dtype type_of_number = SG_DTYPE_F64;
template <>
constexpr sg_dtype type_of_number<float> = SG_DTYPE_F32;
template <>
constexpr sg_dtype type_of_number<cuComplex> = SG_DTYPE_C64;
template <>
constexpr sg_dtype type_of_number<cuDoubleComplex> = SG_DTYPE_C128;

template <class T>
sg_scalar scalar_of(const T *x) noexcept {
  if constexpr (std::is_floating_point_v<T>)
    return {double(*x), 0};
  else
    return {double(x->x), double(x->y)};
}

sg_side side_of(cublasSideMode_t side) noexcept { return side == CUBLAS_SIDE_LEFT ? SG_SIDE_LEFT : SG_SIDE_RIGHT; }
sg_triangle triangle_of(cublasFillMode_t fill) noexcept {
  return fill == CUBLAS_FILL_MODE_LOWER ? SG_TRIANGLE_LOWER : SG_TRIANGLE_UPPER;
}
const std::byte *bytes_at(const void *x) noexcept { return static_cast<const std::byte *>(x); }
std::byte *bytes_at(void *x) noexcept { return static_cast<std::byte *>(x); }
bool is_aligned(sg_dtype type, const void *x) noexcept { return emulated::is_multiple(x, sg::element_size(type)); }

cublasStatus_t run(cublasHandle_t handle, const sg_backend_triangular &x) {
  if (const cublasStatus_t status = emulated::entered(emulated::call::command)) return status;
  const std::int64_t order = x.side == SG_SIDE_LEFT ? x.m : x.n;
  if (x.m < 0 || x.n < 0 || !emulated::has_rows(x.lda, order) || !emulated::has_rows(x.ldb, x.m))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_aligned(x.type, x.a) || !is_aligned(x.type, x.b)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (const cublasStatus_t status = emulated::reached(handle->stream, {x.a, x.b})) return status;
  return emulated::enqueue(handle, [x] { sg::sim::run_triangular(x, bytes_at(x.a), bytes_at(x.b)); });
}

// her2k multiplies the imaginary parts of the diagonal, of which only NaN and infinities make a difference.
template <class Real>
void spoil_diagonal(const sg_backend_symmetric &x) noexcept {
  for (std::int64_t i = 0; i < x.n; ++i) {
    Real *const element = static_cast<Real *>(x.c) + 2 * (i + i * x.ldc);
    element[0] += 0 * element[1];
  }
}

cublasStatus_t run(cublasHandle_t handle, const sg_backend_symmetric &x) {
  if (const cublasStatus_t status = emulated::entered(emulated::call::command)) return status;
  const bool is_product = x.kind == SG_BACKEND_SYMMETRIC_MULTIPLY;
  const std::int64_t rows = is_product ? (x.side == SG_SIDE_LEFT ? x.m : x.n) : x.op == SG_TRANSPOSE_N ? x.n : x.k;
  if (x.m < 0 || x.n < 0 || x.k < 0 || !emulated::has_rows(x.lda, rows) || !emulated::has_rows(x.ldc, x.m) ||
      (x.b != nullptr && !emulated::has_rows(x.ldb, is_product ? x.m : rows)))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_aligned(x.type, x.a) || !is_aligned(x.type, x.b) || !is_aligned(x.type, x.c))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (const cublasStatus_t status = emulated::reached(handle->stream, {x.a, x.b, x.c})) return status;
  return emulated::enqueue(handle, [x] {
    if (x.kind == SG_BACKEND_SYMMETRIC_RANK_2K && x.symmetry == SG_SYMMETRY_HERMITIAN && !sg::is_zero(x.beta))
      x.type == SG_DTYPE_C64 ? spoil_diagonal<float>(x) : spoil_diagonal<double>(x);
    sg::sim::run_symmetric(x, bytes_at(x.a), bytes_at(x.b), bytes_at(x.c));
  });
}

template <class T>
sg_backend_triangular triangular(sg_triangular_kind kind, cublasSideMode_t side, cublasFillMode_t fill,
                                 cublasOperation_t op, cublasDiagType_t diagonal, std::int64_t m, std::int64_t n,
                                 const T *alpha, const T *a, std::int64_t lda, T *b, std::int64_t ldb) {
  sg_backend_triangular x{};
  x.m = m, x.n = n, x.type = type_of_number<T>, x.kind = kind, x.side = side_of(side), x.triangle = triangle_of(fill);
  x.op = emulated::op_of(op);
  x.diagonal = diagonal == CUBLAS_DIAG_UNIT ? SG_DIAGONAL_UNIT : SG_DIAGONAL_STORED;
  x.alpha = scalar_of(alpha), x.a = a, x.lda = lda, x.b = b, x.ldb = ldb;
  return x;
}

template <class T, class Alpha, class Beta>
sg_backend_symmetric symmetric(sg_backend_symmetric_kind kind, sg_symmetry symmetry, cublasFillMode_t fill,
                               std::int64_t m, std::int64_t n, std::int64_t k, const Alpha *alpha, const T *a,
                               std::int64_t lda, const T *b, std::int64_t ldb, const Beta *beta, T *c,
                               std::int64_t ldc) {
  sg_backend_symmetric x{};
  x.kind = kind, x.symmetry = symmetry, x.triangle = triangle_of(fill), x.m = m, x.n = n, x.k = k;
  x.type = type_of_number<T>, x.alpha = scalar_of(alpha), x.beta = scalar_of(beta);
  x.a = a, x.lda = lda, x.b = b, x.ldb = ldb, x.c = c, x.ldc = ldc;
  return x;
}

}  // namespace

#define TRIANGULAR(L, T)                                                                                             \
  API cublasStatus_t cublas##L##trsm_v2_64(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill,      \
                                           cublasOperation_t op, cublasDiagType_t diagonal, std::int64_t m,          \
                                           std::int64_t n, const T *alpha, const T *a, std::int64_t lda, T *b,       \
                                           std::int64_t ldb) {                                                       \
    return run(handle, triangular(SG_TRIANGULAR_SOLVE, side, fill, op, diagonal, m, n, alpha, a, lda, b, ldb));      \
  }                                                                                                                  \
  API cublasStatus_t cublas##L##trmm_v2_64(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill,      \
                                           cublasOperation_t op, cublasDiagType_t diagonal, std::int64_t m,          \
                                           std::int64_t n, const T *alpha, const T *a, std::int64_t lda, const T *b, \
                                           std::int64_t ldb, T *c, std::int64_t ldc) {                               \
    if (b != c || ldb != ldc) return CUBLAS_STATUS_NOT_SUPPORTED; /* the plugin multiplies in place */               \
    return run(handle, triangular(SG_TRIANGULAR_MULTIPLY, side, fill, op, diagonal, m, n, alpha, a, lda, c, ldc));   \
  }
#define PRODUCT(NAME, T, SYMMETRY)                                                                              \
  API cublasStatus_t cublas##NAME##_v2_64(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill,  \
                                          std::int64_t m, std::int64_t n, const T *alpha, const T *a,           \
                                          std::int64_t lda, const T *b, std::int64_t ldb, const T *beta, T *c,  \
                                          std::int64_t ldc) {                                                   \
    sg_backend_symmetric x =                                                                                    \
        symmetric(SG_BACKEND_SYMMETRIC_MULTIPLY, SYMMETRY, fill, m, n, 0, alpha, a, lda, b, ldb, beta, c, ldc); \
    x.side = side_of(side);                                                                                     \
    return run(handle, x);                                                                                      \
  }
#define UPDATE(NAME, T, SCALAR, SYMMETRY)                                                                            \
  API cublasStatus_t cublas##NAME##_v2_64(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op,        \
                                          std::int64_t n, std::int64_t k, const SCALAR *alpha, const T *a,           \
                                          std::int64_t lda, const SCALAR *beta, T *c, std::int64_t ldc) {            \
    sg_backend_symmetric x =                                                                                         \
        symmetric<T>(SG_BACKEND_SYMMETRIC_RANK_K, SYMMETRY, fill, n, n, k, alpha, a, lda, nullptr, 0, beta, c, ldc); \
    x.op = emulated::op_of(op);                                                                                      \
    return run(handle, x);                                                                                           \
  }
#define UPDATE_2K(NAME, T, BETA, SYMMETRY)                                                                        \
  API cublasStatus_t cublas##NAME##_v2_64(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op,     \
                                          std::int64_t n, std::int64_t k, const T *alpha, const T *a,             \
                                          std::int64_t lda, const T *b, std::int64_t ldb, const BETA *beta, T *c, \
                                          std::int64_t ldc) {                                                     \
    sg_backend_symmetric x =                                                                                      \
        symmetric<T>(SG_BACKEND_SYMMETRIC_RANK_2K, SYMMETRY, fill, n, n, k, alpha, a, lda, b, ldb, beta, c, ldc); \
    x.op = emulated::op_of(op);                                                                                   \
    return run(handle, x);                                                                                        \
  }
#define SYMMETRIC(L, T)                        \
  TRIANGULAR(L, T)                             \
  PRODUCT(L##symm, T, SG_SYMMETRY_SYMMETRIC)   \
  UPDATE(L##syrk, T, T, SG_SYMMETRY_SYMMETRIC) \
  UPDATE_2K(L##syr2k, T, T, SG_SYMMETRY_SYMMETRIC)
#define HERMITIAN(L, T, REAL)                     \
  PRODUCT(L##hemm, T, SG_SYMMETRY_HERMITIAN)      \
  UPDATE(L##herk, T, REAL, SG_SYMMETRY_HERMITIAN) \
  UPDATE_2K(L##her2k, T, REAL, SG_SYMMETRY_HERMITIAN)

SYMMETRIC(S, float)
SYMMETRIC(D, double)
SYMMETRIC(C, cuComplex)
SYMMETRIC(Z, cuDoubleComplex)
HERMITIAN(C, cuComplex, float)
HERMITIAN(Z, cuDoubleComplex, double)
