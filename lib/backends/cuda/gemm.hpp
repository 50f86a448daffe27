// SPDX-License-Identifier: Apache-2.0
// Products.
#pragma once

#include "stream.hpp"

namespace sg::cuda {

// Enqueues it.
sg_status run_gemm(stream &in, const sg_backend_gemm &what) noexcept;

// The parts of it: what cuBLAS computes as it is, i8, and f32 through short formats.
sg_status run_blas(stream &in, const sg_backend_gemm &what) noexcept;
sg_status run_i8(stream &in, const sg_backend_gemm &what) noexcept;
sg_status run_split(stream &in, const sg_backend_gemm &what) noexcept;

// One cuBLAS call, or one for each 65,535 items.
struct blas_types {
  cudaDataType in, out;
  cublasComputeType_t compute;
};
struct blas_scalars {
  const void *alpha, *beta;
};
cublasStatus_t call_blas(cublasHandle_t handle, const sg_backend_gemm &what, const blas_types &types,
                         const blas_scalars &scalars) noexcept;
sg_status blas_failure(cublasStatus_t status) noexcept;

// A product with its arrays of pointers, if any, on the device until the end of this object, in the stream's order.
class on_device {
 public:
  explicit on_device(stream &in) noexcept : in_(in) {}
  ~on_device() { in_.give_back(memory_); }
  on_device(const on_device &) = delete;
  on_device &operator=(const on_device &) = delete;
  sg_status bring(sg_backend_gemm &what) noexcept;

 private:
  stream &in_;
  void *memory_ = nullptr;
};

}  // namespace sg::cuda
