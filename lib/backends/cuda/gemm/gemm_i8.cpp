// SPDX-License-Identifier: Apache-2.0
// GEMMs of i8. Tensor cores need both operands contiguous along the depth and everything aligned to 16 bytes; otherwise
// large GEMMs are packed first, and small ones computed by a plain kernel.
#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/gemm/gemm.hpp"
#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/libraries/blas.hpp"

namespace sg::cuda {
namespace {

// Meets the requirements of cuBLAS's tensor core kernels.
bool is_direct(const sg_backend_gemm &g) noexcept {
  return !has_pointers(g) && g.op_a != SG_TRANSPOSE_N && g.op_b == SG_TRANSPOSE_N && g.m % 4 == 0 &&
         g.k % tensor_core_alignment == 0 && is_aligned(g.a, g.lda) && is_aligned(g.b, g.ldb) && g.ldc % 4 == 0 &&
         reinterpret_cast<std::uintptr_t>(g.c) % tensor_core_alignment == 0 &&
         (g.batch == 1 ||
          (g.stride_a % tensor_core_alignment == 0 && g.stride_b % tensor_core_alignment == 0 && g.stride_c % 4 == 0));
}

// cuBLAS's kernels multiply by the scalars in f32, which is exact for integers up to 2^24 only: seen on an H100.
bool has_plain_scalars(const sg_backend_gemm &g) noexcept {
  return g.alpha.re == 1 && (g.beta.re == 0 || g.beta.re == 1);
}

// Where tensor cores win back what packing costs.
bool is_worth_packing(const sg_backend_gemm &g) noexcept {
  return g.batch == 1 && !has_pointers(g) && g.m >= 64 && g.n >= 64 && g.k >= 64 && g.m * g.n >= 256 * 256;
}

cublasStatus_t call(gemm_resources &in, const sg_backend_gemm &g) noexcept {
  cublasHandle_t handle = nullptr;
  if (in.blas_handle(g.compute_units, handle) != SG_STATUS_OK) return CUBLAS_STATUS_NOT_INITIALIZED;
  const auto alpha = static_cast<std::int32_t>(g.alpha.re), beta = static_cast<std::int32_t>(g.beta.re);
  return call_blas(handle, g, {CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I}, {&alpha, &beta});
}

sg_status plain(gemm_resources &in, const sg_backend_gemm &what) noexcept {
  return in.owner().check(launch_gemm_i8(what, in.native()), "starting a GEMM");
}

// Packs both operands contiguous along the depth, then runs the GEMM on those.
sg_status packed(gemm_resources &in, const sg_backend_gemm &what) noexcept {
  const std::int64_t depth = (what.k + tensor_core_alignment - 1) / tensor_core_alignment * tensor_core_alignment;
  const std::int64_t lines = (what.m + 3) / 4 * 4;  // padding rows, not stored if C has no room for them
  void *memory = nullptr;
  if (const sg_status status = in.acquire(static_cast<std::uint64_t>((lines + what.n) * depth), &memory)) return status;
  char *a = static_cast<char *>(memory), *b = a + lines * depth;
  sg_status status = in.owner().check(
      launch_pack_i8({what.a, what.lda, what.m, what.k, depth, what.op_a != SG_TRANSPOSE_N, a}, in.native()),
      "packing");
  if (status == SG_STATUS_OK)
    status = in.owner().check(
        launch_pack_i8({what.b, what.ldb, what.n, what.k, depth, what.op_b == SG_TRANSPOSE_N, b}, in.native()),
        "packing");
  if (status == SG_STATUS_OK) {
    sg_backend_gemm lined = what;
    lined.a = a, lined.b = b;
    lined.lda = lined.ldb = lined.k = depth;
    lined.op_a = SG_TRANSPOSE_T, lined.op_b = SG_TRANSPOSE_N;
    if (call(in, lined) != CUBLAS_STATUS_SUCCESS) status = plain(in, what);
  }
  in.release(memory);
  return status;
}

}  // namespace

sg_status run_i8(gemm_resources &in, const sg_backend_gemm &what) noexcept {
  if (!has_plain_scalars(what)) {
    sg_backend_gemm prepared = what;
    if (const sg_status status = prepare_operands(in, prepared)) return status;
    return plain(in, prepared);
  }
  if (has_pointers(what)) {
    if (!is_worth_packing(item_of(what, 0))) {
      sg_backend_gemm prepared = what;
      if (const sg_status status = prepare_operands(in, prepared)) return status;
      return has_pointers(prepared) ? plain(in, prepared) : run_i8(in, prepared);
    }
    for (std::int64_t i = 0; i < what.batch; ++i)
      if (const sg_status status = run_i8(in, item_of(what, i))) return status;
    return SG_STATUS_OK;
  }
  if (is_direct(what) && call(in, what) == CUBLAS_STATUS_SUCCESS) return SG_STATUS_OK;
  return is_worth_packing(what) ? packed(in, what) : plain(in, what);
}

}  // namespace sg::cuda
