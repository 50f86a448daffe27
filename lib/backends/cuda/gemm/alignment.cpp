// SPDX-License-Identifier: Apache-2.0
// Operands at addresses that cuBLAS does not take: complex ones are aligned to their parts only.
#include "backends/cuda/gemm/aligned_matrix.hpp"
#include "backends/cuda/gemm/gemm.hpp"

namespace sg::cuda {
namespace {

template <class Fits>
bool all_items(const sg_backend_gemm &g, Fits &&fits) noexcept {
  const std::int64_t different = has_pointers(g) ? g.batch : 1;  // the others are whole strides away
  for (std::int64_t i = 0; i < different; ++i)
    for (const char *start : bases_of(g, i).of)
      if (!fits(start)) return false;
  return true;
}

sg_status run_item(gemm_resources &in, const sg_backend_gemm &item) noexcept {
  aligned_matrix a(in, item.in_type), b(in, item.in_type), c(in, item.out_type);
  const bool a_turned = item.op_a != SG_TRANSPOSE_N, b_turned = item.op_b != SG_TRANSPOSE_N;
  const bool reads_c = item.beta.re != 0 || item.beta.im != 0;
  sg_status status = a.take(item.a, item.lda, a_turned ? item.k : item.m, a_turned ? item.m : item.k, true);
  if (status == SG_STATUS_OK)
    status = b.take(item.b, item.ldb, b_turned ? item.n : item.k, b_turned ? item.k : item.n, true);
  if (status == SG_STATUS_OK) status = c.take(item.c, item.ldc, item.m, item.n, reads_c);
  if (status != SG_STATUS_OK) return status;
  sg_backend_gemm there = item;
  there.a = a.data(), there.lda = a.ld();
  there.b = b.data(), there.ldb = b.ld();
  there.c = c.data(), there.ldc = c.ld();
  status = run_blas(in, there);
  return status == SG_STATUS_OK ? c.bring_back() : status;
}

}  // namespace

bool suits_tensor_cores(const sg_backend_gemm &g) noexcept {
  const auto is_whole = [](const char *start) { return is_multiple(start, tensor_core_alignment); };
  const std::int64_t strides = g.batch > 1 && !has_pointers(g) ? g.stride_a | g.stride_b | g.stride_c : 0;
  return (g.m | g.n | g.k | g.lda | g.ldb | g.ldc | strides) % 8 == 0 && all_items(g, is_whole);
}

bool is_misaligned(const sg_backend_gemm &g) noexcept {
  const std::int64_t size = element_size(g.in_type);
  return size != component_size(g.in_type) && !all_items(g, [=](const char *at) { return is_multiple(at, size); });
}

sg_status run_misaligned(gemm_resources &in, const sg_backend_gemm &what) noexcept {
  for (std::int64_t i = 0; i < what.batch; ++i)
    if (const sg_status status = run_item(in, item_of(what, i))) return status;
  return SG_STATUS_OK;
}

}  // namespace sg::cuda
