// SPDX-License-Identifier: Apache-2.0
// f64, f32, c64 and c128 without a library: plain loops over packed panels.
#include <cstring>

#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/simd/simd.hpp"
#include "kernel.hpp"

namespace sg::cpu {
namespace {

template <sg_dtype type>
sg_status run_plain(const gemm_args &p, workspace &) noexcept {
  auto *c = static_cast<char *>(p.c);
  const std::int64_t size = element_size(type);
  if (is_zero(p.beta))
    for (std::int64_t j = 0; j < p.n; ++j) std::memset(c + j * p.ldc * size, 0, static_cast<std::size_t>(p.m * size));
  // Blocks of A that stay in the second-level cache during the pass over B's columns. Each block adds to C once,
  // so that a long sum is rounded as rarely as in a BLAS.
  constexpr std::int64_t rows = 64, depth = 256;
  const auto *a = static_cast<const char *>(p.a);
  const auto *b = static_cast<const char *>(p.b);
  for (std::int64_t l = 0; l < p.k; l += depth)
    for (std::int64_t i = 0; i < p.m; i += rows)
      simd().multiply(type, p.m - i < rows ? p.m - i : rows, p.n, p.k - l < depth ? p.k - l : depth,
                      a + (i + l * p.lda) * size, p.lda, b + l * size, p.ldb, c + i * size, p.ldc);
  return SG_STATUS_OK;
}

}  // namespace

kernel plain_kernel(sg_dtype in, sg_dtype out) noexcept {
  if (in != out) return {};
  const scalars takes = scalars::one_and_zero_or_one;
  switch (in) {
    case SG_DTYPE_F64: return {.in = in, .out = out, .takes = takes, .run = run_plain<SG_DTYPE_F64>};
    case SG_DTYPE_F32: return {.in = in, .out = out, .takes = takes, .run = run_plain<SG_DTYPE_F32>};
    case SG_DTYPE_C64: return {.in = in, .out = out, .takes = takes, .run = run_plain<SG_DTYPE_C64>};
    case SG_DTYPE_C128: return {.in = in, .out = out, .takes = takes, .run = run_plain<SG_DTYPE_C128>};
    default: return {};
  }
}

}  // namespace sg::cpu
