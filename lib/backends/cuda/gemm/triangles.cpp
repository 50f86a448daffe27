// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/gemm/triangles.hpp"

#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/gemm/aligned_matrix.hpp"
#include "backends/cuda/gemm/gemm.hpp"
#include "backends/cuda/libraries/blas.hpp"

namespace sg::cuda {
namespace {

// The routines of a type: those of its letter, and for Hermitian matrices those of another name. `real`: type of the
// scalars that are real.
template <class T>
struct blas_routines;
#define SG_ROUTINES(T, REAL, L, H)                                                           \
  template <>                                                                                \
  struct blas_routines<T> {                                                                  \
    using real = REAL;                                                                       \
    static constexpr auto trsm = &blas_functions::L##trsm;                                   \
    static constexpr auto trmm = &blas_functions::L##trmm;                                   \
    static constexpr auto symm = &blas_functions::L##symm, hemm = &blas_functions::L##H##mm; \
    static constexpr auto syrk = &blas_functions::L##syrk;                                   \
    static constexpr auto herk = &blas_functions::L##H##rk;                                  \
    static constexpr auto syr2k = &blas_functions::L##syr2k;                                 \
    static constexpr auto her2k = &blas_functions::L##H##r2k;                                \
  };
SG_ROUTINES(float, float, S, sy)
SG_ROUTINES(double, double, D, sy)
SG_ROUTINES(cuComplex, float, C, he)
SG_ROUTINES(cuDoubleComplex, double, Z, he)
#undef SG_ROUTINES

template <class Body>
cublasStatus_t with_blas_number(sg_dtype type, Body &&body) noexcept {
  switch (type) {
    case SG_DTYPE_F64: return body.template operator()<double>();
    case SG_DTYPE_F32: return body.template operator()<float>();
    case SG_DTYPE_C64: return body.template operator()<cuComplex>();
    case SG_DTYPE_C128: return body.template operator()<cuDoubleComplex>();
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasSideMode_t blas_side_of(sg_side side) noexcept {
  return side == SG_SIDE_LEFT ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
}
cublasFillMode_t blas_fill_of(sg_triangle triangle) noexcept {
  return triangle == SG_TRIANGLE_LOWER ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
}
accessed_part part_of(sg_triangle triangle) noexcept {
  return triangle == SG_TRIANGLE_LOWER ? accessed_part::lower : accessed_part::upper;
}

// Calls cuBLAS in the operands' arithmetic, whatever the environment says.
template <class Call>
sg_status call_exact(gemm_resources &in, const char *what, Call &&call) noexcept {
  cublasHandle_t handle = nullptr;
  if (const sg_status status = in.blas_handle(0, handle)) return status;
  const bool shortens = environment_shortens();
  if (shortens && blas().set_math_mode(handle, CUBLAS_PEDANTIC_MATH) != CUBLAS_STATUS_SUCCESS)
    return fail(SG_STATUS_BACKEND_FAILURE, "cuBLAS refuses pedantic arithmetic");
  const cublasStatus_t status = call(handle);
  if (shortens) blas().set_math_mode(handle, usual_math_mode);
  return blas_failure(status, what);
}

template <class T>
cublasStatus_t call_triangular(cublasHandle_t handle, const sg_backend_triangular &x, const void *alpha) noexcept {
  using of = blas_routines<T>;
  const auto side = blas_side_of(x.side);
  const auto fill = blas_fill_of(x.triangle);
  const auto diagonal = x.diagonal == SG_DIAGONAL_UNIT ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
  const auto *factor = static_cast<const T *>(alpha), *a = static_cast<const T *>(x.a);
  auto *const b = static_cast<T *>(x.b);
  return x.kind == SG_TRIANGULAR_SOLVE
             ? (blas().*of::trsm)(handle, side, fill, blas_op_of(x.op), diagonal, x.m, x.n, factor, a, x.lda, b, x.ldb)
             : (blas().*of::trmm)(handle, side, fill, blas_op_of(x.op), diagonal, x.m, x.n, factor, a, x.lda, b, x.ldb,
                                  b, x.ldb);
}

template <class T>
cublasStatus_t call_symmetric(cublasHandle_t handle, const sg_backend_symmetric &x, const void *alpha,
                              const void *beta) noexcept {
  using of = blas_routines<T>;
  using real = typename of::real;
  const auto fill = blas_fill_of(x.triangle);
  const auto op = blas_op_of(x.op);
  const auto *factor = static_cast<const T *>(alpha), *factor_of_c = static_cast<const T *>(beta);
  const auto *real_factor = static_cast<const real *>(alpha), *real_factor_of_c = static_cast<const real *>(beta);
  const auto *a = static_cast<const T *>(x.a), *b = static_cast<const T *>(x.b);
  auto *const c = static_cast<T *>(x.c);
  const bool is_hermitian = x.symmetry == SG_SYMMETRY_HERMITIAN;
  switch (x.kind) {
    case SG_BACKEND_SYMMETRIC_MULTIPLY: {
      const auto routine = is_hermitian ? of::hemm : of::symm;
      return (blas().*routine)(handle, blas_side_of(x.side), fill, x.m, x.n, factor, a, x.lda, b, x.ldb, factor_of_c, c,
                               x.ldc);
    }
    case SG_BACKEND_SYMMETRIC_RANK_K:
      return is_hermitian
                 ? (blas().*of::herk)(handle, fill, op, x.n, x.k, real_factor, a, x.lda, real_factor_of_c, c, x.ldc)
                 : (blas().*of::syrk)(handle, fill, op, x.n, x.k, factor, a, x.lda, factor_of_c, c, x.ldc);
    case SG_BACKEND_SYMMETRIC_RANK_2K:
      return is_hermitian
                 ? (blas().*of::her2k)(handle, fill, op, x.n, x.k, factor, a, x.lda, b, x.ldb, real_factor_of_c, c,
                                       x.ldc)
                 : (blas().*of::syr2k)(handle, fill, op, x.n, x.k, factor, a, x.lda, b, x.ldb, factor_of_c, c, x.ldc);
  }
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

// The imaginary parts of a Hermitian C's diagonal count as 0, whatever they hold; cuBLAS's her2k multiplies them.
sg_status clear_imaginary_diagonal(gemm_resources &in, const sg_backend_symmetric &x) noexcept {
  const auto size = static_cast<std::size_t>(element_size(x.type)), part = size / 2;
  const std::size_t pitch = (static_cast<std::size_t>(x.ldc) + 1) * size;
  const bool at_once = pitch <= in.owner().facts().memPitch;
  const auto rows = static_cast<std::size_t>(x.n), step = at_once ? rows : std::size_t{1};
  for (std::size_t i = 0; i < rows; i += step)
    if (const sg_status status = in.owner().check(cudaMemset2DAsync(static_cast<char *>(x.c) + part + i * pitch,
                                                                    at_once ? pitch : size, 0, part, step, in.native()),
                                                  "clearing imaginary parts of a symmetric update"))
      return status;
  return SG_STATUS_OK;
}

// C of an update without a product is scaled as by one with a column of zeros: with a factor of 0 cuBLAS reads A all
// the same.
class column_of_zeros {
 public:
  explicit column_of_zeros(gemm_resources &in) noexcept : in_(in) {}
  ~column_of_zeros() { in_.release(memory_); }
  column_of_zeros(const column_of_zeros &) = delete;
  column_of_zeros &operator=(const column_of_zeros &) = delete;

  sg_status become_the_product_of(sg_backend_symmetric &x) noexcept {
    const auto bytes = static_cast<std::uint64_t>(x.n * element_size(x.type));
    if (const sg_status status = in_.acquire(bytes, &memory_)) return status;
    x.kind = SG_BACKEND_SYMMETRIC_RANK_K;
    x.op = SG_TRANSPOSE_N;
    x.alpha = {1, 0};
    x.a = memory_, x.lda = x.n, x.k = 1;
    return in_.owner().check(cudaMemsetAsync(memory_, 0, bytes, in_.native()), "zeros of a symmetric update");
  }

 private:
  gemm_resources &in_;
  void *memory_ = nullptr;
};

}  // namespace

sg_status run_triangular(gemm_resources &in, const sg_backend_triangular &what) noexcept {
  const std::int64_t order = what.side == SG_SIDE_LEFT ? what.m : what.n;
  aligned_matrix a(in, what.type, part_of(what.triangle)), b(in, what.type);
  sg_status status = a.take(what.a, what.lda, order, order, true);
  if (status == SG_STATUS_OK) status = b.take(what.b, what.ldb, what.m, what.n, true);
  if (status != SG_STATUS_OK) return status;
  sg_backend_triangular there = what;
  there.a = a.data(), there.lda = a.ld();
  there.b = b.data(), there.ldb = b.ld();
  const blas_scalar alpha(what.alpha, what.type);
  status = call_exact(in, "triangular solve or product", [&](cublasHandle_t handle) {
    return with_blas_number(there.type, [&]<class T>() { return call_triangular<T>(handle, there, &alpha); });
  });
  return status == SG_STATUS_OK ? b.bring_back() : status;
}

sg_status run_symmetric(gemm_resources &in, const sg_backend_symmetric &what) noexcept {
  const bool is_product = what.kind == SG_BACKEND_SYMMETRIC_MULTIPLY;
  const std::int64_t order = what.side == SG_SIDE_LEFT ? what.m : what.n;
  const bool is_plain = what.op == SG_TRANSPOSE_N;
  const std::int64_t rows = is_plain ? what.n : what.k, cols = is_plain ? what.k : what.n;  // of an update's A and B
  const accessed_part triangle = part_of(what.triangle);
  aligned_matrix a(in, what.type, is_product ? triangle : accessed_part::all), b(in, what.type),
      c(in, what.type, is_product ? accessed_part::all : triangle);
  sg_status status = SG_STATUS_OK;
  if (what.a != nullptr) status = a.take(what.a, what.lda, is_product ? order : rows, is_product ? order : cols, true);
  if (status == SG_STATUS_OK && what.b != nullptr)
    status = b.take(what.b, what.ldb, is_product ? what.m : rows, is_product ? what.n : cols, true);
  if (status == SG_STATUS_OK) status = c.take(what.c, what.ldc, what.m, what.n, what.beta.re != 0 || what.beta.im != 0);
  if (status != SG_STATUS_OK) return status;
  sg_backend_symmetric there = what;
  if (what.a != nullptr) there.a = a.data(), there.lda = a.ld();
  if (what.b != nullptr) there.b = b.data(), there.ldb = b.ld();
  there.c = c.data(), there.ldc = c.ld();
  const bool reads_c = there.beta.re != 0 || there.beta.im != 0;
  if (there.kind == SG_BACKEND_SYMMETRIC_RANK_2K && there.symmetry == SG_SYMMETRY_HERMITIAN && reads_c)
    status = clear_imaginary_diagonal(in, there);
  if (status != SG_STATUS_OK) return status;
  column_of_zeros zeros(in);
  if (there.a == nullptr) status = zeros.become_the_product_of(there);
  if (status != SG_STATUS_OK) return status;
  const blas_scalar alpha(there.alpha, there.type), beta(there.beta, there.type);
  status = call_exact(in, is_product ? "symmetric product" : "symmetric update", [&](cublasHandle_t handle) {
    return with_blas_number(there.type, [&]<class T>() { return call_symmetric<T>(handle, there, &alpha, &beta); });
  });
  return status == SG_STATUS_OK ? c.bring_back() : status;
}

}  // namespace sg::cuda
