// SPDX-License-Identifier: Apache-2.0
// What the functions of the emulated cuBLAS share.
#pragma once

#include <cublas_v2.h>
#include <streamgemm/types.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <utility>

#include "gpu.hpp"

#define API extern "C" __attribute__((visibility("default")))

struct cublasContext {
  cudaStream_t stream;
};

namespace emulated {

inline cublasStatus_t status_of(cudaError_t error) noexcept {
  return error == cudaSuccess                 ? CUBLAS_STATUS_SUCCESS
         : error == cudaErrorMemoryAllocation ? CUBLAS_STATUS_ALLOC_FAILED
                                              : CUBLAS_STATUS_EXECUTION_FAILED;
}

// cuBLAS has its own runtime: its failures do not set the plugin's latest CUDA error.
inline cublasStatus_t entered(call kind) noexcept {
  const cudaError_t error = enter(kind);
  if (error != cudaSuccess) cudaGetLastError();
  return status_of(error);
}

inline cublasStatus_t reached(cudaStream_t in, std::initializer_list<const void *> memory) {
  const cudaError_t error = reach(in, memory);
  if (error != cudaSuccess) cudaGetLastError();
  return status_of(error);
}

inline cublasStatus_t enqueue(cublasHandle_t handle, std::function<void()> work) {
  return status_of(enqueue(handle->stream, std::move(work)));
}

inline sg_transpose op_of(cublasOperation_t op) noexcept {
  return op == CUBLAS_OP_N ? SG_TRANSPOSE_N : op == CUBLAS_OP_T ? SG_TRANSPOSE_T : SG_TRANSPOSE_C;
}

inline bool has_rows(std::int64_t ld, std::int64_t rows) noexcept { return ld >= std::max<std::int64_t>(1, rows); }

}  // namespace emulated
