// SPDX-License-Identifier: Apache-2.0
#include "cuda_gpu.hpp"

#include <chrono>
#include <cstdio>
#include <stdexcept>

namespace sg::cli {

void check(bool ok, const char *what) {
  if (!ok) throw std::runtime_error(what);
}

double timed(const std::function<void()> &work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool types_of(const gpu_gemm &p, types &out) {
  switch (p.dtype) {
    case SG_DTYPE_F64: out = {CUDA_R_64F, CUBLAS_COMPUTE_64F, 8}; return true;
    case SG_DTYPE_F32:
      out = {CUDA_R_32F, p.compute == SG_COMPUTE_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, 4};
      return p.compute == SG_COMPUTE_TF32 || p.compute == SG_COMPUTE_EXACT;
    case SG_DTYPE_BF16: out = {CUDA_R_16BF, CUBLAS_COMPUTE_32F, 2}; return true;
    case SG_DTYPE_F16: out = {CUDA_R_16F, CUBLAS_COMPUTE_32F, 2}; return true;
    default: return false;
  }
}

gpu::gpu() {
  CHECK(cudaSetDevice(0));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CHECK(cublasCreate(&blas));
  CHECK(cublasSetStream(blas, stream));
  CHECK(cudaMalloc(&workspace, workspace_bytes));
  CHECK(cublasSetWorkspace(blas, workspace, workspace_bytes));
  CHECK(cublasLtCreate(&lt));
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&end));
}

char *gpu::memory(std::size_t bytes) {
  if (bytes <= held_) return memory_;
  cudaFree(memory_);
  held_ = cudaMalloc(&memory_, bytes) == cudaSuccess ? bytes : 0;
  if (held_ == 0) cudaGetLastError(), memory_ = nullptr;
  return memory_;
}

void gpu::multiply(const gpu_gemm &p, const types &t, const void *a, const void *b, void *c) {
  CHECK(cublasGemmEx_64(blas, op_of(p.op_a), op_of(p.op_b), p.m, p.n, p.k, constants.one(t), a, t.data, p.lda, b,
                        t.data, p.ldb, constants.zero(t), c, t.data, p.ldc, t.compute, CUBLAS_GEMM_DEFAULT));
}

double gpu::by_events(const std::function<void()> &work) {
  CHECK(cudaEventRecord(start, stream));
  work();
  CHECK(cudaEventRecord(end, stream));
  CHECK(cudaEventSynchronize(end));
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, start, end));
  return milliseconds * 1e-3;
}

gpu &the_gpu() {
  static gpu only;
  return only;
}

lane::lane(int priority) {
  CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
  CHECK(cublasCreate(&blas));
  CHECK(cublasSetStream(blas, stream));
  CHECK(cudaMalloc(&workspace, gpu::workspace_bytes));
  CHECK(cublasSetWorkspace(blas, workspace, gpu::workspace_bytes));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
}

lane::~lane() {
  cudaStreamSynchronize(stream);
  cudaEventDestroy(event);
  cublasDestroy(blas);
  cudaFree(workspace);
  cudaStreamDestroy(stream);
}

void call(const lane &on, const gpu_gemm &p, const types &t) {
  if (p.batch == 1)
    CHECK(cublasGemmEx_64(on.blas, op_of(p.op_a), op_of(p.op_b), p.m, p.n, p.k, constants.one(t), p.a, t.data, p.lda,
                          p.b, t.data, p.ldb, scalar(t, p.beta), p.c, t.data, p.ldc, t.compute, CUBLAS_GEMM_DEFAULT));
  else
    CHECK(cublasGemmStridedBatchedEx_64(on.blas, op_of(p.op_a), op_of(p.op_b), p.m, p.n, p.k, constants.one(t), p.a,
                                        t.data, p.lda, p.stride_a, p.b, t.data, p.ldb, p.stride_b, scalar(t, p.beta),
                                        p.c, t.data, p.ldc, p.stride_c, p.batch, t.compute, CUBLAS_GEMM_DEFAULT));
}

void tell_failure(const char *what) noexcept {
  std::fprintf(stderr, "a peer failed: %s\n", what);
  cudaGetLastError();
}

}  // namespace sg::cli
