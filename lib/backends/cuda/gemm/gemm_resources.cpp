// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/gemm/gemm_resources.hpp"

#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/libraries/blas.hpp"

namespace sg::cuda {
namespace {

// The size that cuBLAS's documentation recommends: 32 MiB from Hopper on, 4 MiB before.
std::uint64_t workspace_bytes(const cudaDeviceProp &facts) noexcept {
  return std::uint64_t{facts.major >= 9 ? 32u : 4u} << 20;
}

}  // namespace

// With less memory cuBLAS excludes the kernels that need more.
sg_status gemm_resources::take_workspace() noexcept {
  constexpr std::uint64_t enough_for_all = 64 << 10;
  for (std::uint64_t bytes = workspace_bytes(owner().facts());; bytes /= 8) {
    const sg_status status = acquire(bytes, &workspace_);
    if (status == SG_STATUS_OK) workspace_bytes_ = bytes;
    if (status != SG_STATUS_OUT_OF_MEMORY || bytes / 8 < enough_for_all) return status;
  }
}

sg_status gemm_resources::blas_handle(std::int32_t units, cublasHandle_t &out) noexcept {
  const auto check = [](cublasStatus_t status) {
    if (status == CUBLAS_STATUS_SUCCESS) return SG_STATUS_OK;
    return fail(status == CUBLAS_STATUS_ALLOC_FAILED ? SG_STATUS_OUT_OF_MEMORY : SG_STATUS_BACKEND_FAILURE,
                "cuBLAS does not start: %s", blas().text(status));
  };
  if (blas_ == nullptr) {
    if (workspace_ == nullptr)
      if (const sg_status status = take_workspace()) return status;
    cublasHandle_t fresh = nullptr;
    if (const sg_status status = check(blas().create(&fresh))) return status;
    // The workspace after the stream: setting a stream resets cuBLAS's workspace.
    sg_status status = check(blas().set_stream(fresh, native()));
    if (status == SG_STATUS_OK) status = check(blas().set_workspace(fresh, workspace_, workspace_bytes_));
    if (status == SG_STATUS_OK) status = check(blas().set_math_mode(fresh, usual_math_mode));
    if (status != SG_STATUS_OK) {
      blas().destroy(fresh);
      return status;
    }
    blas_ = fresh;
  }
  if (units != units_) {
    if (const sg_status status = check(blas().set_units(blas_, units))) return status;
    units_ = units;
  }
  out = blas_;
  return SG_STATUS_OK;
}

sg_status gemm_resources::run_matmul(const sg_backend_gemm &what, cublasStatus_t &outcome) noexcept {
  cublasHandle_t blas = nullptr;
  if (const sg_status status = blas_handle(units_, blas)) return status;  // a cuBLAS handle is a cublasLt handle too
  const matmul::call here{*this, is_captured() ? nullptr : tuned_.get(), reinterpret_cast<cublasLtHandle_t>(blas),
                          workspace_, workspace_bytes_};
  const matmul *known = matmuls_.find(here, what);
  outcome = known == nullptr ? CUBLAS_STATUS_NOT_SUPPORTED : known->run(here, what);
  return SG_STATUS_OK;
}

void gemm_resources::free() noexcept {
  if (blas_ != nullptr) blas().destroy(blas_);
  release(workspace_);
  call_stream::free();
}

}  // namespace sg::cuda
