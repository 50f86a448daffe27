// SPDX-License-Identifier: Apache-2.0
// f32 matrices in pageable memory, multiplied with compute bf16: a device with its own memory receives them downcast.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "support/harness.hpp"

namespace sg_test {
namespace {

using floats = std::vector<float>;

// To bf16, rounded as IEEE does; no NaN.
float rounded(float x) {
  if (x == 0) return x;
  const float unit = std::ldexp(1.0f, std::ilogb(x) - 7);
  return std::nearbyint(x / unit) * unit;
}

class downcast : public on_each_device {
 protected:
  bool has_own_memory() {
    sg_device_info info = SG_DEVICE_INFO_INIT;
    EXPECT_OK(sg_context_get_device_info(context_, 0, &info));
    return !info.unified_memory;
  }
  // Row-major, without gaps.
  sg_gemm_desc gemm_desc_of(const floats &a, const floats &b, floats &c, sg_compute compute) const {
    sg_gemm_desc desc = SG_GEMM_DESC_INIT;
    desc.a = {const_cast<float *>(a.data()), m, k, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
    desc.b = {const_cast<float *>(b.data()), k, n, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
    desc.c = {c.data(), m, n, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
    desc.compute = compute;
    return desc;
  }
  sg_job_statistics run(const sg_gemm_desc &desc) {
    job made;
    sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
    EXPECT_OK(sg_gemm_async(context_, &desc, nullptr, made.out()));
    EXPECT_OK(sg_job_wait(made, SG_FOREVER, nullptr));
    EXPECT_OK(sg_job_get_statistics(made, &statistics));
    return statistics;
  }

  static constexpr std::int64_t m = 120, n = 90, k = 70;
};

// 12-bit integers, which bf16 rounds, times -1, 0 and 1: the sums of rounded ones are exact.
TEST_P(downcast, matches_operands_rounded_beforehand) {
  std::mt19937 random(5);
  floats a(m * k), b(k * n), c(m * n, -1);
  for (float &x : a) x = static_cast<float>(random() % 4096) - 2048;
  for (float &x : b) x = static_cast<float>(random() % 3) - 1;
  const sg_job_statistics seen = run(gemm_desc_of(a, b, c, SG_COMPUTE_BF16));
  const bool rounds = has_own_memory();
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        const float x = a[static_cast<std::size_t>(i * k + l)];
        sum += (rounds ? rounded(x) : x) * b[static_cast<std::size_t>(l * n + j)];
      }
      ASSERT_EQ(sum, c[static_cast<std::size_t>(i * n + j)]) << i << ", " << j;
    }
  floats again(m * n, -1);
  const sg_job_statistics exact = run(gemm_desc_of(a, b, again, SG_COMPUTE_EXACT));
  if (!rounds) {
    EXPECT_EQ(again, c) << "in f32 either way";
  }
  EXPECT_EQ(rounds ? 2 * seen.bytes_in : seen.bytes_in, exact.bytes_in);
  EXPECT_EQ(rounds ? 4u * (m * k + k * n) : 0u, exact.bytes_in);
  EXPECT_EQ(seen.bytes_out, exact.bytes_out);
}

// Values that bf16 holds pass through unchanged.
TEST_P(downcast, keeps_special_values) {
  floats a(m * k, 0.0f), b(k * n, 0.0f), c(m * n, -1);
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::bit_cast<float>(0x7f800001u);  // none of it in the upper half
  const float specials[] = {infinity, -infinity, nan, 0x1p-120f, 0x1.fep127f};
  for (std::size_t i = 0; i < 5; ++i) a[i * k + 3] = specials[i];
  b[3 * n + 2] = 1;
  run(gemm_desc_of(a, b, c, SG_COMPUTE_BF16));
  for (std::size_t i = 0; i < 5; ++i) {
    const float seen = c[i * n + 2];
    if (std::isnan(specials[i]))
      EXPECT_TRUE(std::isnan(seen)) << seen;
    else
      EXPECT_EQ(specials[i], seen);
  }
}

// A with gaps between columns, B transposed, C added to.
TEST_P(downcast, gaps_transposes_and_sums) {
  const std::int64_t ld_a = m + 3, ld_b = k + 1;
  floats a(ld_a * k, NAN), b(ld_b * n, NAN), c(m * n, 3);
  for (std::int64_t l = 0; l < k; ++l)
    for (std::int64_t i = 0; i < m; ++i) a[l * ld_a + i] = static_cast<float>(1000 + 7 * i + l);
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t l = 0; l < k; ++l) b[j * ld_b + l] = static_cast<float>((j + l) % 3 - 1);
  sg_gemm_desc desc = gemm_desc_of(a, b, c, SG_COMPUTE_BF16);
  desc.a.ld = ld_a;
  desc.a.layout = SG_LAYOUT_COLUMN_MAJOR;
  desc.b = {b.data(), n, k, ld_b, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
  desc.op_b = SG_TRANSPOSE_T;
  desc.beta.re = 2;
  run(desc);
  const bool rounds = has_own_memory();
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 6;
      for (std::int64_t l = 0; l < k; ++l)
        sum += (rounds ? rounded(a[l * ld_a + i]) : a[l * ld_a + i]) * b[j * ld_b + l];
      ASSERT_EQ(sum, c[i * n + j]) << i << ", " << j;
    }
}

// More bytes than one staging chunk, with and without gaps.
TEST_P(downcast, in_several_chunks) {
  constexpr std::int64_t rows = 3000, depth = 1000;
  for (const std::int64_t ld : {rows, rows + 5}) {
    floats a(ld * depth), b(depth, 0.0f), c(rows, -1);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 4093);
    sg_gemm_desc desc = SG_GEMM_DESC_INIT;
    desc.a = {a.data(), rows, depth, ld, SG_DTYPE_F32, SG_LAYOUT_COLUMN_MAJOR};
    desc.b = {b.data(), depth, 1, 0, SG_DTYPE_F32, SG_LAYOUT_COLUMN_MAJOR};
    desc.c = {c.data(), rows, 1, 0, SG_DTYPE_F32, SG_LAYOUT_COLUMN_MAJOR};
    desc.compute = SG_COMPUTE_BF16;
    for (std::int64_t column = 0; column < depth; column += 180) {  // C is this column of A
      b.assign(b.size(), 0);
      b[column] = 1;
      run(desc);
      for (std::int64_t i = 0; i < rows; ++i) {
        const float x = a[column * ld + i];
        ASSERT_EQ(has_own_memory() ? rounded(x) : x, c[i]) << i << " of column " << column << ", ld " << ld;
      }
    }
  }
}

// C keeps its type on its way in and out.
TEST_P(downcast, results_are_not_rounded) {
  const float odd = 1 + 0x1p-20f;
  floats a(m * k, 0.0f), b(k * n, 0.0f), c(m * n, odd);
  sg_gemm_desc desc = gemm_desc_of(a, b, c, SG_COMPUTE_BF16);
  desc.beta.re = 1;
  run(desc);
  EXPECT_EQ(c, floats(m * n, odd));
}

TEST_P(downcast, graphs_downcast_when_they_run) {
  floats a(m * k), b(k * n, 0.0f), c(m * n, -1);
  b[0] = 1;  // the first column of C is that of A
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  const sg_gemm_desc desc = gemm_desc_of(a, b, c, SG_COMPUTE_BF16);
  ASSERT_OK(sg_gemm_async(context_, &desc, &record, nullptr));
  for (const float value : {257.0f, 1027.0f}) {
    a.assign(a.size(), value);
    job all;
    ASSERT_OK(sg_graph_run_async(graph, nullptr, all.out()));
    ASSERT_OK(sg_job_wait(all, SG_FOREVER, nullptr));
    for (std::int64_t i = 0; i < m; ++i) ASSERT_EQ(has_own_memory() ? rounded(value) : value, c[i * n]);
  }
  EXPECT_OK(sg_graph_release(graph));
}

ON_EACH_DEVICE(downcast);

}  // namespace
}  // namespace sg_test
