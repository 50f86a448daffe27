// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/gemm/proposals.hpp"

#include <cublasLt.h>

#include <algorithm>

#include "backends/common/types.hpp"

namespace sg::cuda {
namespace {

// For GEMMs of 16 bits that fill the chip many times cublasLt 13.0 proposes tiles of 320x128 or 192x192 first, which
// are slower than its best of 256x128: microseconds on an H200, C column major and nothing transposed, medians of 7 to
// 13 series, with alternating proposals (no record is kept): bf16 8192^3 1443 and 1377, f16 8192^3 1514 and 1455, bf16
// 16384^3 12537 and 12221, bf16 8192x8192x2048 392 and 371, bf16 11008x4096x4096 512 and 494, f16 6144^3 631 and 615.
// For GEMMs that fill it less often, cublasLt's first proposal was the best: 4096^3, 3.9 times.
constexpr int some = 8;
constexpr float many_times = 8;

// Of f32 GEMMs cublasLt 13.0 splits short K first: on an H100, of 51 drawn ones in tf32 its first proposal took up
// to 1.71 times the best one's time (95th percentile 1.49), and up to 1.29 (1.16) if a part of K has 96 terms at least;
// one of 160x8x1024 in f32, in 264 parts, 5.1 times (no record is kept).
constexpr std::int64_t shortest_part_tf32 = 96, shortest_part_f32 = 32;

std::size_t with_long_parts(const sg_backend_gemm &what, const proposal *from, std::size_t count) noexcept {
  const std::int64_t shortest = what.compute == SG_COMPUTE_TF32 ? shortest_part_tf32 : shortest_part_f32;
  const auto found = std::find_if(
      from, from + count, [&](const proposal &one) { return one.splits <= 1 || what.k >= shortest * one.splits; });
  return found == from + count ? 0 : static_cast<std::size_t>(found - from);
}

}  // namespace

int proposals_to_examine(const sg_backend_gemm &what, int major) noexcept {
  const bool plain = what.op_a == SG_TRANSPOSE_N && what.op_b == SG_TRANSPOSE_N && what.compute_units == 0;
  const bool is_measured = what.in_type == SG_DTYPE_F32 || (is_short_float(what.in_type) && plain);
  return major == 9 && is_measured ? some : 1;
}

std::size_t likely_fastest(const sg_backend_gemm &what, const proposal *from, std::size_t count) noexcept {
  if (what.in_type == SG_DTYPE_F32) return with_long_parts(what, from, count);
  const auto found = std::find_if(from, from + count, [](const proposal &one) {
    return (one.tile == CUBLASLT_MATMUL_TILE_256x128 || one.tile == CUBLASLT_MATMUL_TILE_128x256) &&
           one.waves >= many_times;
  });
  return found == from + count ? 0 : static_cast<std::size_t>(found - from);
}

}  // namespace sg::cuda
