// SPDX-License-Identifier: Apache-2.0
// Single products by cublasLt: what it takes to call it for a shape, found once and kept by the stream. A call then costs the
// host less than cublasGemmEx, which finds it anew each time.
#pragma once

#include <cublasLt.h>
#include <streamgemm/backend.h>

#include <cstdint>
#include <memory>
#include <unordered_map>

namespace sg::cuda {

class stream;

// All that cublasLt's choice of a kernel may depend on.
struct matmul_key {
  std::int64_t m, n, k, lda, ldb, ldc;
  std::int32_t op_a, op_b, in_type, out_type, compute, units;
  std::int32_t align_a, align_b, align_c;  // bytes, at most 256

  bool operator==(const matmul_key &) const = default;
};
matmul_key matmul_key_of(const sg_backend_gemm &what) noexcept;
struct matmul_key_hash {
  std::size_t operator()(const matmul_key &key) const noexcept;
};

// A product's description for cublasLt, and the kernel chosen for it.
class matmul {
 public:
  matmul() noexcept = default;
  ~matmul();
  matmul(const matmul &) = delete;
  matmul &operator=(const matmul &) = delete;

  // False: cublasLt has no such product here.
  bool describe(cublasLtHandle_t handle, const sg_backend_gemm &what, std::uint64_t workspace_bytes) noexcept;
  cublasStatus_t run(cublasLtHandle_t handle, const sg_backend_gemm &what, void *workspace, cudaStream_t in) const noexcept;

 private:
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  cublasLtMatmulHeuristicResult_t choice_{};
};

// A stream's.
class matmul_cache {
 public:
  // nullptr: the product is not for cublasLt. Valid until the next call.
  const matmul *find(cublasLtHandle_t handle, const sg_backend_gemm &what, std::uint64_t workspace_bytes) noexcept;

 private:
  std::unordered_map<matmul_key, std::unique_ptr<matmul>, matmul_key_hash> known_;  // empty: cublasLt has none
};

// Whether it is one that cublasLt is asked for: single, real, of a type that both libraries compute alike.
bool suits_matmul(const sg_backend_gemm &what) noexcept;

}  // namespace sg::cuda
