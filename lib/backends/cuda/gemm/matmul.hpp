// SPDX-License-Identifier: Apache-2.0
// Single products by cublasLt: what it takes to call it for a shape, found once and kept by the stream. A call then
// costs the host less than cublasGemmEx, which finds it anew each time.
//
// The kernel is the one of cublasLt's proposals that is likely the fastest, or, when the device is tuned, the one that
// is.
#pragma once

#include <cublasLt.h>
#include <streamgemm/backend.h>

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "backends/cuda/gemm/choices.hpp"

namespace sg::cuda {

class stream;

matmul_key matmul_key_of(const sg_backend_gemm &what) noexcept;

// A product's description for cublasLt, and the kernel chosen for it.
class matmul {
 public:
  matmul() noexcept = default;
  ~matmul();
  matmul(const matmul &) = delete;
  matmul &operator=(const matmul &) = delete;

  // Where it is called.
  struct call_resources {
    stream &in;
    cublasLtHandle_t handle;
    void *workspace;
    std::uint64_t workspace_bytes;
  };
  // False: cublasLt has no such product here.
  bool describe(const call_resources &where, const sg_backend_gemm &what) noexcept;
  cublasStatus_t run(const call_resources &where, const sg_backend_gemm &what) const noexcept;

 private:
  using candidate = cublasLtMatmulHeuristicResult_t;
  bool describe_matrices(const sg_backend_gemm &what) noexcept;
  int propose(const call_resources &where, const sg_backend_gemm &what, candidate *out, int most) const noexcept;
  bool adopt(const call_resources &where, const sg_backend_gemm &what, const kernel_choice &choice) noexcept;
  bool choose_untimed(const call_resources &where, const sg_backend_gemm &what) noexcept;
  void choose_fastest(const call_resources &where, const sg_backend_gemm &what, const candidate *from,
                      int count) noexcept;
  double seconds_of(const call_resources &where, const sg_backend_gemm &what, const candidate &one, void *result,
                    int times) const noexcept;
  cublasStatus_t run(const call_resources &where, const sg_backend_gemm &what, const candidate &by,
                     void *result) const noexcept;

  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  cublasLtMatmulHeuristicResult_t choice_{};
};

// A stream's.
class matmul_cache {
 public:
  // nullptr: the product is not for cublasLt. Valid until the next call.
  const matmul *find(const matmul::call_resources &where, const sg_backend_gemm &what) noexcept;

 private:
  std::unordered_map<matmul_key, std::unique_ptr<matmul>, matmul_key_hash> known_;  // empty: cublasLt has none
};

// Whether it is one that cublasLt is asked for: single, real, of a type for which both libraries give the same results.
bool suits_matmul(const sg_backend_gemm &what) noexcept;

}  // namespace sg::cuda
