// SPDX-License-Identifier: Apache-2.0
// Which of cublasLt's proposals is used without timing. It needs no GPU.
#include "backends/cuda/gemm/proposals.hpp"

#include <cublasLt.h>
#include <gtest/gtest.h>

#include <vector>

namespace sg::cuda {
namespace {

constexpr std::uint32_t large = CUBLASLT_MATMUL_TILE_320x128, square = CUBLASLT_MATMUL_TILE_192x192,
                        tall = CUBLASLT_MATMUL_TILE_256x128, wide = CUBLASLT_MATMUL_TILE_128x256;

std::size_t taken(const std::vector<proposal> &list) {
  sg_backend_gemm gemm{};
  gemm.in_type = SG_DTYPE_BF16;
  return likely_fastest(gemm, list.data(), list.size());
}

TEST(proposals, of_256_by_128_go_first_where_they_fill_the_device_many_times) {
  EXPECT_EQ(1u, taken({{large, 12.6f}, {tall, 15.5f}, {wide, 15.5f}}));
  EXPECT_EQ(2u, taken({{square, 56}, {large, 50.4f}, {wide, 62.1f}, {tall, 62.1f}}));
  EXPECT_EQ(0u, taken({{tall, 11.6f}, {wide, 11.6f}, {large, 9.5f}}));
}

TEST(proposals, stay_as_they_are_otherwise) {
  EXPECT_EQ(0u, taken({{large, 3.2f}, {tall, 3.9f}})) << "it fills the device a few times only";
  EXPECT_EQ(0u, taken({{large, 12.6f}, {square, 14}})) << "there is none";
  EXPECT_EQ(0u, taken({{large, 12.6f}}));
}

TEST(proposals, are_looked_at_where_the_first_is_not_the_best) {
  sg_backend_gemm gemm{};
  gemm.in_type = SG_DTYPE_BF16;
  EXPECT_LT(1, proposals_to_examine(gemm, 9));
  EXPECT_EQ(1, proposals_to_examine(gemm, 8)) << "measured on another generation";
  gemm.in_type = SG_DTYPE_F16;
  EXPECT_LT(1, proposals_to_examine(gemm, 9));
  gemm.op_b = SG_TRANSPOSE_T;
  EXPECT_EQ(1, proposals_to_examine(gemm, 9)) << "not measured";
  gemm.op_b = SG_TRANSPOSE_N;
  gemm.compute_units = 66;
  EXPECT_EQ(1, proposals_to_examine(gemm, 9)) << "the number of waves on the rest of the device is unknown";
  gemm.compute_units = 0;
  gemm.in_type = SG_DTYPE_F64;
  EXPECT_EQ(1, proposals_to_examine(gemm, 9));
  gemm.in_type = SG_DTYPE_F32;
  gemm.op_b = SG_TRANSPOSE_T;
  EXPECT_LT(1, proposals_to_examine(gemm, 9));
}

TEST(proposals, of_f32_have_parts_of_many_terms) {
  const std::vector<proposal> list{{large, 1, 16}, {large, 1, 8}, {large, 1, 1}};
  sg_backend_gemm gemm{};
  gemm.in_type = SG_DTYPE_F32;
  const auto taken_of = [&](std::int64_t k, sg_compute compute) {
    gemm.k = k, gemm.compute = compute;
    return likely_fastest(gemm, list.data(), list.size());
  };
  EXPECT_EQ(0u, taken_of(16 * 32, SG_COMPUTE_EXACT));
  EXPECT_EQ(1u, taken_of(16 * 32 - 1, SG_COMPUTE_EXACT));
  EXPECT_EQ(2u, taken_of(8 * 32 - 1, SG_COMPUTE_EXACT));
  EXPECT_EQ(2u, taken_of(16 * 32, SG_COMPUTE_TF32));
  EXPECT_EQ(0u, taken_of(16 * 96, SG_COMPUTE_TF32));
}

}  // namespace
}  // namespace sg::cuda
