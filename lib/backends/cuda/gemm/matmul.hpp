// SPDX-License-Identifier: Apache-2.0
// Single GEMMs by cublasLt: the descriptors and kernel of a shape, found once and cached by the stream. A call then
// costs the host less than cublasGemmEx, which finds them each time.
//
// The kernel is the likely fastest of cublasLt's proposals, or, if the device is tuned, the fastest by measurement.
#pragma once

#include <cublasLt.h>
#include <streamgemm/backend.h>

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "backends/cuda/gemm/choices.hpp"

namespace sg::cuda {

class call_stream;

matmul_key matmul_key_of(const sg_backend_gemm &what) noexcept;

// cublasLt's description of a GEMM, and the kernel chosen for it.
class matmul {
 public:
  matmul() noexcept = default;
  ~matmul();
  matmul(const matmul &) = delete;
  matmul &operator=(const matmul &) = delete;

  struct call {
    call_stream &in;
    choices *tuned;  // nullptr: kernels are not timed
    cublasLtHandle_t handle;
    void *workspace;
    std::uint64_t workspace_bytes;
  };
  // False: cublasLt has no such GEMM here.
  bool describe(const call &where, const sg_backend_gemm &what) noexcept;
  cublasStatus_t run(const call &where, const sg_backend_gemm &what) const noexcept;

 private:
  using candidate = cublasLtMatmulHeuristicResult_t;
  bool describe_matrices(const sg_backend_gemm &what) noexcept;
  bool set_bias(const sg_backend_gemm &what) const noexcept;  // of the next run
  int propose(const call &where, const sg_backend_gemm &what, candidate *out, int most) const noexcept;
  bool adopt(const call &where, const sg_backend_gemm &what, const kernel_choice &choice) noexcept;
  bool choose_untimed(const call &where, const sg_backend_gemm &what) noexcept;
  void choose_fastest(const call &where, const sg_backend_gemm &what, const candidate *from, int count) noexcept;
  double seconds_of(const call &where, const sg_backend_gemm &what, const candidate &one, void *result,
                    int times) const noexcept;
  cublasStatus_t run(const call &where, const sg_backend_gemm &what, const candidate &by, void *result) const noexcept;

  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  cublasLtMatmulHeuristicResult_t choice_{};
};

// Cache of a stream.
class matmul_cache {
 public:
  // nullptr: cublasLt is not used for this GEMM. Valid until the next call.
  const matmul *find(const matmul::call &where, const sg_backend_gemm &what) noexcept;

 private:
  std::unordered_map<matmul_key, std::unique_ptr<matmul>, matmul_key_hash> known_;  // empty: cublasLt has none
};

// Whether to ask cublasLt: single, real, of a type for which both libraries give the same results.
bool suits_matmul(const sg_backend_gemm &what) noexcept;
// Whether cublasLt can apply the epilogue to the sums before they are rounded. It then does so in any run of the GEMM.
// Of operands that do not suit tensor cores it rounds the sums first: seen on an H200 with C and a bias of bf16 that
// are 10 bytes into their buffers.
bool suits_fused_epilogue(const sg_backend_gemm &what) noexcept;

}  // namespace sg::cuda
