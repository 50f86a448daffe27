// SPDX-License-Identifier: Apache-2.0
// f64, c64, c128 and f32 by CBLAS.
#include <algorithm>
#include <complex>

#include "backends/cpu/libraries/cblas_arguments.hpp"
#include "backends/cpu/libraries/cblas_library.hpp"
#include "kernel.hpp"

namespace sg::cpu {
namespace {

// A matrix times a vector: y = alpha * op(matrix) * x + beta * y.
struct matrix_vector {
  CBLAS_TRANSPOSE op;
  std::int64_t rows, cols;  // of the matrix as stored
  const void *matrix;
  std::int64_t ld;
  const void *x;
  std::int64_t x_step;
  std::int64_t y_step, y_count;
};

// A GEMM with one column or one row of C as a matrix times a vector; false: CBLAS has no such routine.
bool as_matrix_vector(const gemm_args &p, matrix_vector &out) noexcept {
  if (p.n == 1 && p.op_b != SG_TRANSPOSE_C) {
    out = {.op = transpose_of(p.op_a),
           .rows = p.op_a == SG_TRANSPOSE_N ? p.m : p.k,
           .cols = p.op_a == SG_TRANSPOSE_N ? p.k : p.m,
           .matrix = p.a,
           .ld = p.lda,
           .x = p.b,
           .x_step = p.op_b == SG_TRANSPOSE_N ? 1 : p.ldb,
           .y_step = 1,
           .y_count = p.m};
    return true;
  }
  if (p.m == 1 && p.op_a != SG_TRANSPOSE_C && p.op_b != SG_TRANSPOSE_C) {  // the transpose: C^T = op(B)^T * op(A)^T
    out = {.op = p.op_b == SG_TRANSPOSE_N ? CblasTrans : CblasNoTrans,
           .rows = p.op_b == SG_TRANSPOSE_N ? p.k : p.n,
           .cols = p.op_b == SG_TRANSPOSE_N ? p.n : p.k,
           .matrix = p.b,
           .ld = p.ldb,
           .x = p.a,
           .x_step = p.op_a == SG_TRANSPOSE_N ? p.lda : 1,
           .y_step = p.ldc,
           .y_count = p.n};
    return true;
  }
  return false;
}

// OpenBLAS 0.3.21's complex kernels for Haswell and later read one element behind x for the last two of such rows
// (kernel/x86_64/zgemv_n_4.c), which may be unmapped. For one row they do not.
template <class T>
constexpr bool reads_behind_x(const matrix_vector &v) noexcept {
  return !std::is_floating_point_v<T> && v.op == CblasNoTrans && v.rows % 4 == 2;
}

template <class T, auto gemv>
void multiply_vector(const cblas_library &library, const gemm_args &p, const matrix_vector &v) noexcept {
  auto *const y = static_cast<T *>(p.c);
  // With a beta of 0 some versions multiply y, NaN included.
  sg_scalar beta = p.beta;
  if (is_zero(beta)) {
    for (std::int64_t i = 0; i < v.y_count; ++i) y[i * v.y_step] = T{};
    beta = {1, 0};
  }
  const auto multiply_rows = [&](std::int64_t first, std::int64_t rows) {
    (library.*gemv)(CblasColMajor, v.op, static_cast<int>(rows), static_cast<int>(v.cols), cblas_scalar<T>(p.alpha),
                    static_cast<cblas_pointer<T>>(static_cast<const T *>(v.matrix) + first), static_cast<int>(v.ld),
                    static_cast<cblas_pointer<T>>(v.x), static_cast<int>(v.x_step), cblas_scalar<T>(beta),
                    static_cast<cblas_result<T>>(y + first * v.y_step), static_cast<int>(v.y_step));
  };
  const std::int64_t separate_rows = reads_behind_x<T>(v) ? 1 : 0;
  multiply_rows(0, v.rows - separate_rows);
  if (separate_rows) multiply_rows(v.rows - separate_rows, separate_rows);
}

template <class T, auto gemm, auto gemv>
sg_status run(const gemm_args &p, workspace &) noexcept {
  const cblas_library &library = *cblas();
  const cblas_call call(static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k));
  if (call.status() != SG_STATUS_OK) return call.status();
  matrix_vector v;
  // Other implementations may skip zeros, and so miss a NaN.
  if (library.set_num_threads != nullptr && as_matrix_vector(p, v)) {
    multiply_vector<T, gemv>(library, p, v);
    return SG_STATUS_OK;
  }
  (library.*gemm)(CblasColMajor, transpose_of(p.op_a), transpose_of(p.op_b), static_cast<int>(p.m),
                  static_cast<int>(p.n), static_cast<int>(p.k), cblas_scalar<T>(p.alpha),
                  static_cast<cblas_pointer<T>>(p.a), static_cast<int>(p.lda), static_cast<cblas_pointer<T>>(p.b),
                  static_cast<int>(p.ldb), cblas_scalar<T>(p.beta), static_cast<cblas_result<T>>(p.c),
                  static_cast<int>(p.ldc));
  return SG_STATUS_OK;
}

}  // namespace

kernel cblas_kernel(sg_dtype in, sg_dtype out) noexcept {
  using library = cblas_library;
  if (in != out || cblas() == nullptr) return {};
  switch (in) {
    case SG_DTYPE_F64: return {.in = in, .out = out, .run = run<double, &library::dgemm, &library::dgemv>};
    case SG_DTYPE_F32: return {.in = in, .out = out, .run = run<float, &library::sgemm, &library::sgemv>};
    case SG_DTYPE_C64: return {.in = in, .out = out, .run = run<std::complex<float>, &library::cgemm, &library::cgemv>};
    case SG_DTYPE_C128:
      return {.in = in, .out = out, .run = run<std::complex<double>, &library::zgemm, &library::zgemv>};
    default: return {};
  }
}

sg_status cblas_warm_up() noexcept {
  if (const sg_status status = load_cblas(); status != SG_STATUS_OK || cblas() == nullptr) return status;
  constexpr int n = 64;           // above the size of kernels for small matrices, which need no buffer
  float a[n * n] = {}, c[n * n];  // local: several threads may open a device at once
  double d[n * n] = {}, e[n * n];
  const cblas_call call(n * n * n);
  if (call.status() != SG_STATUS_OK) return call.status();
  cblas()->sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, a, n, 0, c, n);
  cblas()->dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, d, n, d, n, 0, e, n);
  return SG_STATUS_OK;
}

}  // namespace sg::cpu
