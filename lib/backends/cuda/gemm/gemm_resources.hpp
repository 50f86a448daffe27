// SPDX-License-Identifier: Apache-2.0
// What the GEMMs of one stream use: a cuBLAS handle with its workspace, and kernels of cublasLt.
#pragma once

#include <cublas_v2.h>
#include <streamgemm/backend.h>

#include <cstdint>
#include <memory>

#include "backends/cuda/gemm/choices.hpp"
#include "backends/cuda/gemm/matmul.hpp"
#include "backends/cuda/memory/call_stream.hpp"

namespace sg::cuda {

// No tf32 unless requested, and no split-k sums in a format shorter than f32.
inline constexpr auto usual_math_mode =
    static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);

class gemm_resources : public call_stream {
 public:
  // `tuned`: of the device; empty: kernels are not timed.
  gemm_resources(gpu &owner, cudaStream_t native, bool captured, const std::unique_ptr<choices> &tuned) noexcept
      : call_stream(owner, native, captured), tuned_(tuned) {}
  void free() noexcept;

  // `units`: limit of multiprocessors for its calls; 0: all. The handle is made by the first call.
  sg_status blas_handle(std::int32_t units, cublasHandle_t &out) noexcept;
  // By cublasLt; CUBLAS_STATUS_NOT_SUPPORTED: it has no such GEMM.
  sg_status run_matmul(const sg_backend_gemm &what, cublasStatus_t &outcome) noexcept;

 private:
  sg_status take_workspace() noexcept;

  const std::unique_ptr<choices> &tuned_;
  cublasHandle_t blas_ = nullptr;
  std::int32_t units_ = 0;  // of blas_
  void *workspace_ = nullptr;
  std::uint64_t workspace_bytes_ = 0;
  matmul_cache matmuls_;
};

}  // namespace sg::cuda
