// SPDX-License-Identifier: Apache-2.0
// f32 factors that cross the link as bf16 where the caller's compute allows it and both are staged.
#include <algorithm>

#include "execute.hpp"
#include "plan/gemm/resident/cost.hpp"
#include "plan/planner.hpp"

namespace sg::test {
namespace {

problem_form pageable(std::int64_t m, std::int64_t n, std::int64_t k) {
  problem_form f;
  f.m = m, f.n = n, f.k = k;
  f.a = f.b = f.c = SG_MEMORY_PAGEABLE;
  return f;
}

problem allowing(sg_compute compute, const problem_form &f) {
  problem p = make(f);
  p.compute = compute;
  return p;
}

schedule plan(const problem &p, const plan_request &request = {}) {
  return *make_gemm_plan({p}, h200_with_three_staging_workers(), request);
}

TEST(downcast, half_the_bytes_cross_the_link) {
  const problem_form f = pageable(4096, 4096, 4096);
  const double matrix = 4096.0 * 4096 * 4;
  const schedule narrow = plan(allowing(SG_COMPUTE_BF16, f)), wide = plan(allowing(SG_COMPUTE_TF32, f));
  EXPECT_EQ(narrow.bytes_in, matrix);
  EXPECT_EQ(wide.bytes_in, 2 * matrix);
  EXPECT_EQ(narrow.bytes_out, matrix);
  EXPECT_LT(narrow.bound_seconds, wide.bound_seconds);
  EXPECT_LT(narrow.device_bytes, wide.device_bytes);
  EXPECT_TRUE(check_hazards(narrow).empty());
  for (const command &c : narrow.commands)
    if (c.is<ops::gemm>()) {
      EXPECT_EQ(narrow.buffers[std::size_t(c.views[ops::gemm::a].buffer)].type, SG_DTYPE_BF16);
      EXPECT_EQ(narrow.buffers[std::size_t(c.views[ops::gemm::b].buffer)].type, SG_DTYPE_BF16);
      EXPECT_EQ(narrow.buffers[std::size_t(c.views[ops::gemm::c].buffer)].type, SG_DTYPE_F32);
      EXPECT_EQ(c.as<ops::gemm>()->compute, SG_COMPUTE_EXACT);
    }
}

// The link's bytes halve, the workers' do not: they still read f32.
TEST(downcast, workers_read_as_many_bytes) {
  const problem_form f = pageable(4096, 4096, 4096);
  const double staged = 3 * 4096.0 * 4096 * 4;
  const schedule s = plan(allowing(SG_COMPUTE_BF16, f));
  EXPECT_GE(s.predicted_seconds, staged / staging_rate_of(h200_with_three_staging_workers(),
                                                          {h200_with_three_staging_workers().staging_workers, 0}));
  device_model quick = h200_with_three_staging_workers();  // its link alone is the bottleneck
  quick.staging = {{1, 1e12}};
  quick.staging_gap = 0;
  EXPECT_LT(make_gemm_plan({allowing(SG_COMPUTE_BF16, f)}, quick, {})->predicted_seconds,
            0.8 * make_gemm_plan({allowing(SG_COMPUTE_TF32, f)}, quick, {})->predicted_seconds);
}

// pcie3's chip has no bf16 arithmetic, and multiplies bf16 more slowly than f32.
TEST(downcast, not_where_arithmetic_would_be_slower) {
  const device_model old = shipped_model("pcie3");
  const auto bytes_in = [&](std::int64_t size) {
    return make_gemm_plan({allowing(SG_COMPUTE_BF16, pageable(size, size, size))}, old, {})->bytes_in;
  };
  EXPECT_EQ(bytes_in(1024), 2 * 1024.0 * 1024 * 2) << "the link is the bound";
  EXPECT_EQ(bytes_in(8192), 2 * 8192.0 * 8192 * 4) << "the chip is";
}

// Only where the compute type allows it, and only where host threads touch both factors anyway.
TEST(downcast, nothing_else_is_downcast) {
  const problem_form f = pageable(512, 512, 512);
  const double matrix = 512.0 * 512 * 4;
  for (sg_compute compute : {SG_COMPUTE_EXACT, SG_COMPUTE_TF32, SG_COMPUTE_3XTF32, SG_COMPUTE_BF16X3})
    EXPECT_EQ(plan(allowing(compute, f)).bytes_in, 2 * matrix) << compute;
  for (sg_memory_kind place : {SG_MEMORY_PINNED, SG_MEMORY_DEVICE}) {
    problem_form one = f;
    one.b = place;
    EXPECT_EQ(plan(allowing(SG_COMPUTE_BF16, one)).bytes_in, (place == SG_MEMORY_PINNED ? 2 : 1) * matrix);
  }
  problem_form f64 = f;
  f64.in = f64.out = SG_DTYPE_F64;
  EXPECT_EQ(plan(allowing(SG_COMPUTE_BF16, f64)).bytes_in, 4 * matrix);
  device_model without = h200_with_three_staging_workers();
  std::erase_if(without.rates, [](const gemm_rate &r) { return r.type == SG_DTYPE_BF16; });
  EXPECT_EQ(make_gemm_plan({allowing(SG_COMPUTE_BF16, f)}, without, {})->bytes_in, 2 * matrix);
}

bool is_narrow(const schedule &s) {
  return std::any_of(s.buffers.begin(), s.buffers.end(),
                     [](const buffer &b) { return b.kind == buffer_kind::staging && b.type == SG_DTYPE_BF16; });
}

TEST(downcast, every_form_is_right) {
  for (const sg_transpose op_a : {SG_TRANSPOSE_N, SG_TRANSPOSE_T})
    for (const sg_transpose op_b : {SG_TRANSPOSE_N, SG_TRANSPOSE_T})
      for (const std::int64_t batch : {1, 3})
        for (const batch_form form : {batch_form::strided, batch_form::gapped, batch_form::interleaved,
                                      batch_form::shared_a, batch_form::shared_b, batch_form::pointers})
          for (const bool beta_zero : {true, false})
            for (const sg_memory_kind c : {SG_MEMORY_PAGEABLE, SG_MEMORY_PINNED, SG_MEMORY_DEVICE})
              for (const std::int64_t tile : {0, 5}) {
                problem_form f = pageable(13, 11, 17);
                f.op_a = op_a, f.op_b = op_b, f.batch = batch, f.batching = form, f.beta_zero = beta_zero, f.c = c;
                f.pad = 2;
                f.end = tile == 0 ? ending::nothing : ending::own_row_bias_relu, f.bias = c;
                plan_request request;
                request.tile_m = request.tile_n = request.tile_k = tile;
                const problem p = allowing(SG_COMPUTE_BF16, f);
                const schedule s = plan(p, request);
                ASSERT_TRUE(is_right(s, p)) << text(f) << " tile " << tile;
                ASSERT_TRUE(is_narrow(s)) << text(f);
              }
}

TEST(downcast, every_split_is_right) {
  for (const split_kind split : {split_kind::none, split_kind::m, split_kind::n, split_kind::k, split_kind::batch})
    for (const std::int32_t parts : {0, 3}) {
      if (split == split_kind::none && parts > 1) continue;
      problem_form f = pageable(13, 11, 17);
      f.batch = split == split_kind::batch ? 4 : 1;
      f.beta_zero = false;
      plan_request request;
      request.split = split, request.parts = parts;
      const problem p = allowing(SG_COMPUTE_BF16, f);
      const schedule s = plan(p, request);
      EXPECT_TRUE(is_right(s, p)) << int(split) << " x" << parts;
      EXPECT_TRUE(is_narrow(s)) << int(split) << " x" << parts;
    }
}

// Resident panels, and more of them than there is room for.
TEST(downcast, within_any_memory) {
  problem_form f = pageable(200, 150, 300);
  f.beta_zero = false;
  f.pad = 1;
  const problem p = allowing(SG_COMPUTE_BF16, f);
  const std::int64_t all = 2 * (200 * 300 + 300 * 150) + 4 * 200 * 150;
  for (const std::int64_t limit : {std::int64_t(0), all + 1024, all / 2, all / 16}) {
    plan_request request;
    request.memory_limit = limit;
    const schedule s = plan(p, request);
    EXPECT_TRUE(is_narrow(s)) << limit;
    EXPECT_TRUE(is_right(s, p)) << limit;
    if (limit > 0) {
      EXPECT_LE(s.device_bytes, limit);
    }
  }
}

TEST(downcast, downcast_tiles_are_sized_by_bf16) {
  const problem p = allowing(SG_COMPUTE_BF16, pageable(32, 32, 32));
  plan_request request;
  request.tile_m = request.tile_n = request.tile_k = 16;
  request.memory_limit = 16 * 16 * (2 + 2 + 4);
  const schedule s = plan(p, request);
  EXPECT_EQ(s.device_bytes, request.memory_limit);
  EXPECT_TRUE(is_right(s, p));
}

TEST(downcast, with_others_in_a_group) {
  std::vector<problem> several(3, allowing(SG_COMPUTE_BF16, pageable(13, 11, 17)));
  several[1].compute = SG_COMPUTE_EXACT;
  const schedule s = *make_gemm_plan(several, h200_with_three_staging_workers(), {});
  EXPECT_TRUE(is_right(s, several));
  EXPECT_EQ(s.bytes_in, (2 + 4 + 2) * (13 * 17 + 17 * 11));
}

}  // namespace
}  // namespace sg::test
