// SPDX-License-Identifier: Apache-2.0
// f32 products through tensor cores: each operand as a high and a low part, and of the four products of parts the three
// that matter, formed as one product of three times the depth. Tensor cores cut off what they cannot hold of a sum, so a
// long depth is taken in pieces whose sums are added in f32 with rounding.
#include "blas.hpp"
#include "failure.hpp"
#include "gemm.hpp"
#include "kernels.hpp"

namespace sg::cuda {
namespace {

constexpr std::int64_t piece = 512;  // of the depth

// Where three short products are faster than one in f32, with what splitting costs.
bool pays(const sg_backend_gemm &g) noexcept {
  return g.batch == 1 && !has_pointers(g) && g.k >= 128 &&
         double(g.m) * double(g.n) >= 1024.0 * 1024.0;
}

}  // namespace

sg_status run_split(stream &in, const sg_backend_gemm &what) noexcept {
  if (has_pointers(what) && pays(item_of(what, 0))) {
    for (std::int64_t i = 0; i < what.batch; ++i)
      if (const sg_status status = run_split(in, item_of(what, i))) return status;
    return SG_STATUS_OK;
  }
  if (!pays(what)) return run_blas(in, what);
  cublasHandle_t handle = nullptr;
  if (const sg_status status = in.blas_handle(what.compute_units, handle)) return status;
  const bool is_tf32 = what.compute == SG_COMPUTE_3XTF32;
  const short_format format = is_tf32 ? short_format::tf32 : short_format::bf16;
  const blas_types types = is_tf32 ? blas_types{CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32}
                                   : blas_types{CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
  const std::int64_t size = is_tf32 ? 4 : 2;
  const std::int64_t deepest = std::min(piece, what.k);
  void *memory = nullptr;
  const std::int64_t bytes_a = (what.m * 3 * deepest * size + 255) / 256 * 256;
  if (const sg_status status =
          in.take(static_cast<std::uint64_t>(bytes_a + what.n * 3 * deepest * size), &memory))
    return status;
  char *a = static_cast<char *>(memory), *b = a + bytes_a;
  const auto alpha = static_cast<float>(what.alpha.re), beta = static_cast<float>(what.beta.re), one = 1.0f;
  sg_status status = SG_STATUS_OK;
  for (std::int64_t first = 0; first < what.k && status == SG_STATUS_OK; first += piece) {
    const std::int64_t depth = std::min(piece, what.k - first);
    const bool rows_a = what.op_a != SG_OP_N, rows_b = what.op_b == SG_OP_N;  // the depth runs along the rows
    const auto *from_a = static_cast<const float *>(what.a) + (rows_a ? first : first * what.lda);
    const auto *from_b = static_cast<const float *>(what.b) + (rows_b ? first : first * what.ldb);
    const split_panel of_a{from_a, what.lda, rows_a ? depth : what.m, rows_a ? what.m : depth, rows_a, false, format, a};
    const split_panel of_b{from_b, what.ldb, rows_b ? depth : what.n, rows_b ? what.n : depth, rows_b, true, format, b};
    status = in.owner().check(launch_split(of_a, in.native()), "splitting");
    if (status == SG_STATUS_OK) status = in.owner().check(launch_split(of_b, in.native()), "splitting");
    if (status != SG_STATUS_OK) break;
    sg_backend_gemm g = what;
    g.a = a, g.b = b;
    g.k = 3 * depth;
    g.lda = rows_a ? g.k : what.m;
    g.ldb = rows_b ? g.k : what.n;
    status = blas_failure(call_blas(handle, g, types, {&alpha, first == 0 ? &beta : &one}));
  }
  in.give_back(memory);
  return status;
}

}  // namespace sg::cuda
