// SPDX-License-Identifier: Apache-2.0
// cuBLAS, loaded when it is first needed: where it is absent the plugin still loads and can say so.
#pragma once

#include <cublas_v2.h>

#include <cstdint>

namespace sg::cuda {

struct blas_functions {
  decltype(&cublasCreate_v2) create;
  decltype(&cublasDestroy_v2) destroy;
  decltype(&cublasSetStream_v2) set_stream;
  decltype(&cublasSetWorkspace_v2) set_workspace;
  decltype(&cublasSetMathMode) set_math_mode;
  decltype(&cublasGetVersion_v2) version;
  decltype(&cublasGetStatusString) text;
  decltype(&cublasGemmEx_64) gemm;
  decltype(&cublasGemmStridedBatchedEx_64) gemm_strided;
  decltype(&cublasGemmBatchedEx_64) gemm_pointers;
  decltype(&cublasSetSmCountTarget) set_units;
  decltype(&cublasGemmGroupedBatchedEx_64) gemm_grouped;  // nullptr before cuBLAS 12.5
};

// The functions, or nullptr with a reason (at most `size` bytes). Any thread; loads once and stays loaded.
const blas_functions *load_blas(char *reason, std::uint64_t size) noexcept;
// What load_blas() has loaded; it succeeded before.
const blas_functions &blas() noexcept;

}  // namespace sg::cuda
