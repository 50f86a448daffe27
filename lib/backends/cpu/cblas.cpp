// SPDX-License-Identifier: Apache-2.0
// f64, c64, c128 and f32 by CBLAS.
#include <cblas.h>

#include "fork_lock.hpp"
#include "kernel.hpp"

// OpenBLAS's; absent from other implementations.
extern "C" void openblas_set_num_threads(int) __attribute__((weak));

namespace sg::cpu {
namespace {

constexpr CBLAS_TRANSPOSE transpose_of(sg_op op) noexcept {
  return op == SG_OP_N ? CblasNoTrans : op == SG_OP_T ? CblasTrans : CblasConjTrans;
}

template <class T, auto gemm>
sg_status run_real(const product &p, workspace &) noexcept {
  const fork_waits while_it_runs;  // OpenBLAS takes a lock when it begins and when it ends
  gemm(CblasColMajor, transpose_of(p.op_a), transpose_of(p.op_b), static_cast<int>(p.m), static_cast<int>(p.n),
       static_cast<int>(p.k), static_cast<T>(p.alpha.re), static_cast<const T *>(p.a), static_cast<int>(p.lda),
       static_cast<const T *>(p.b), static_cast<int>(p.ldb), static_cast<T>(p.beta.re), static_cast<T *>(p.c),
       static_cast<int>(p.ldc));
  return SG_STATUS_OK;
}

template <class T, auto gemm>
sg_status run_complex(const product &p, workspace &) noexcept {
  const fork_waits while_it_runs;
  const T alpha[2] = {static_cast<T>(p.alpha.re), static_cast<T>(p.alpha.im)};
  const T beta[2] = {static_cast<T>(p.beta.re), static_cast<T>(p.beta.im)};
  gemm(CblasColMajor, transpose_of(p.op_a), transpose_of(p.op_b), static_cast<int>(p.m), static_cast<int>(p.n),
       static_cast<int>(p.k), alpha, p.a, static_cast<int>(p.lda), p.b, static_cast<int>(p.ldb), beta, p.c,
       static_cast<int>(p.ldc));
  return SG_STATUS_OK;
}

}  // namespace

kernel cblas_kernel(sg_dtype in, sg_dtype out) noexcept {
  if (in != out) return {};
  switch (in) {
    case SG_DTYPE_F64: return {.in = in, .out = out, .run = run_real<double, cblas_dgemm>};
    case SG_DTYPE_F32: return {.in = in, .out = out, .run = run_real<float, cblas_sgemm>};
    case SG_DTYPE_C64: return {.in = in, .out = out, .run = run_complex<float, cblas_cgemm>};
    case SG_DTYPE_C128: return {.in = in, .out = out, .run = run_complex<double, cblas_zgemm>};
    default: return {};
  }
}

// One thread: the cores belong to the streams, and a call of OpenBLAS that uses its own threads can neither be forked
// nor exited beside. Its first product allocates the buffers that its threads share.
sg_status cblas_warm_up() noexcept {
  // Before a fork OpenBLAS ends its threads; here they are started again, behind a lock of its own.
  const std::lock_guard lock(fork_lock());
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
  constexpr int n = 64;           // beyond its kernels for small matrices, which need no buffer
  float a[n * n] = {}, c[n * n];  // of its own: several threads may open a device at once
  double d[n * n] = {}, e[n * n];
  cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, a, n, 0, c, n);
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, d, n, d, n, 0, e, n);
  return SG_STATUS_OK;
}

}  // namespace sg::cpu
