// SPDX-License-Identifier: Apache-2.0
// Costs on the H200's model against measurements on the card, and the bound against arithmetic by hand.
#include "plan/gemm/resident/cost.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "problems.hpp"

namespace sg::test {
namespace {

double rate(std::int64_t width, std::int64_t height, bool both, bool in = true) {
  return copy_rate(h200(), {width, height, 2 * width, 2 * width, in}, both) / 1e9;
}

TEST(cost, contiguous_copies) {
  EXPECT_DOUBLE_EQ(rate(1 << 20, 1, false), 55.0);
  EXPECT_DOUBLE_EQ(rate(1 << 20, 1, false, false), 55.2);
  EXPECT_DOUBLE_EQ(rate(1 << 20, 1, true), 51.6);
  // Rows that touch on both sides are one run, however narrow.
  EXPECT_DOUBLE_EQ(copy_rate(h200(), {256, 1000, 256, 256, true}, false), 55.0e9);
  EXPECT_LT(copy_rate(h200(), {256, 1000, 256, 512, true}, false), 26.0e9);
  EXPECT_DOUBLE_EQ(copy_rate(h200(), {256, 1000, 256, 320, true}, false), 55.0e9 * 256 / 320) << "as with its gaps";
}

TEST(cost, narrow_rows_are_slow) {
  EXPECT_DOUBLE_EQ(rate(256, 100, false), 25);
  EXPECT_DOUBLE_EQ(rate(1024, 100, false), 38);
  EXPECT_DOUBLE_EQ(rate(4096, 100, false), 39.5);
  EXPECT_DOUBLE_EQ(rate(8192, 100, true), 31.7);
  EXPECT_DOUBLE_EQ(rate(128, 100, false), 12.5);
  double before = 0;
  for (std::int64_t width = 16; width < 1 << 20; width += width / 3 + 1)
    for (bool both : {true, false}) {
      EXPECT_LE(rate(width, 9, true), rate(width, 9, false));
      if (!both) {
        EXPECT_GE(rate(width, 9, both), before);
        before = rate(width, 9, both);
      }
    }
}

// A model measured on an H200: 54.7, 38.1 and 27.5 GB/s for rows of 1 KiB that are 2, 32 and 64 KiB apart.
TEST(cost, rows_in_different_pages_are_slower) {
  device_model model = h200();
  model.runs = {{.run_bytes = 1024, .one_way = 54.7e9, .both_ways = 45e9, .far_factor = 0.5}};
  const auto far = [&](std::int64_t host_pitch, bool in) {
    return copy_rate(model, {1024, 100, in ? 1024 : host_pitch, in ? host_pitch : 1024, in}, false) / 1e9;
  };
  for (const bool in : {true, false}) {
    EXPECT_DOUBLE_EQ(far(2048, in), 54.7);
    EXPECT_NEAR(far(32768, in), 38.1, 2);
    EXPECT_DOUBLE_EQ(far(65536, in), 54.7 / 2);
    EXPECT_DOUBLE_EQ(far(1 << 20, in), 54.7 / 2);
  }
  EXPECT_DOUBLE_EQ(copy_rate(model, {1024, 100, 1 << 20, 2048, true}, false), 54.7e9)
      << "pages of the device do not count";
}

gemm_shape cube(std::int64_t n, sg_compute compute = SG_COMPUTE_EXACT, sg_dtype type = SG_DTYPE_F32) {
  return {n, n, n, 1, type, type, compute, false};
}

TEST(cost, large_gemms_reach_the_measured_rates) {
  const double flops = 2 * 8192.0 * 8192 * 8192;
  EXPECT_NEAR(flops / gemm_cost(h200(), cube(8192)).seconds / 51e12, 1, 0.01);
  EXPECT_NEAR(flops / gemm_cost(h200(), cube(8192, SG_COMPUTE_TF32)).seconds / 416e12, 1, 0.01);
  EXPECT_NEAR(flops / gemm_cost(h200(), cube(8192, SG_COMPUTE_EXACT, SG_DTYPE_F64)).seconds / 64e12, 1, 0.01);
  EXPECT_GT(gemm_cost(h200(), cube(8192)).chip_share, 0.99);
}

TEST(cost, small_gemms_leave_the_chip_empty) {
  // Measured: 12.2 us each on one stream, 0.28 us each in one batched call of 512.
  const gemm_shape one{64, 64, 1024, 1, SG_DTYPE_F32, SG_DTYPE_F32, SG_COMPUTE_EXACT, false};
  gemm_shape batched = one;
  batched.batch = 512;
  EXPECT_NEAR(gemm_seconds(h200(), one), 12.2e-6, 5e-6);
  EXPECT_NEAR(gemm_seconds(h200(), batched) / 512, 0.28e-6, 0.1e-6);
  EXPECT_LT(gemm_cost(h200(), one).chip_share, 0.1);
  // A second wave with one tile costs much of another wave; after many waves it costs little.
  const auto tiles = [&](std::int64_t count) {
    return gemm_cost(h200(), {128, 128 * count, 4096, 1, SG_DTYPE_F32, SG_DTYPE_F32, SG_COMPUTE_EXACT, false}).seconds;
  };
  EXPECT_GT(tiles(133) / tiles(132), 1.25);
  EXPECT_LT(tiles(132 * 20 + 1) / tiles(132 * 20), 1.01);
}

// bench/results/small.json, cuBLAS in f32: 8 of 64x64x16384 as one batch 623 us, on one stream 131; 8 of 64x64x1024 as
// one batch 36, on one stream 112.
TEST(cost, a_batch_does_not_split_the_depth) {
  gemm_shape deep{64, 64, 16384, 1, SG_DTYPE_F32, SG_DTYPE_F32, SG_COMPUTE_EXACT, false};
  const double one = gemm_seconds(h200(), deep);
  const std::vector<gemm_shape> few(8, deep), many(512, deep);
  deep.batch = 8;
  EXPECT_LT(one, 30e-6);
  EXPECT_GT(gemm_seconds(h200(), deep), 150e-6);
  EXPECT_LT(gemm_seconds(h200(), deep), 600e-6);
  EXPECT_NEAR(group_seconds(h200(), few), gemm_seconds(h200(), deep), 1e-6);
  EXPECT_LT(group_seconds(h200(), many), 512 * one);
  deep.batch = 1;
  const std::size_t worthwhile = min_batch_size(h200(), deep);
  EXPECT_GT(worthwhile, 16u);
  EXPECT_LT(worthwhile, 100u);
  EXPECT_EQ(1u, min_batch_size(h200(), {64, 64, 64, 1, SG_DTYPE_F32, SG_DTYPE_F32, SG_COMPUTE_EXACT, false}));
  EXPECT_EQ(1u, min_batch_size(h200(), cube(4096))) << "it fills the chip by itself";
  device_model cores = h200();
  cores.lanes_are_cores = true;
  EXPECT_EQ(1u, min_batch_size(cores, deep)) << "no other core shares the depth";
}

// On a chip a bias or an activation is another kernel, which reads the sums once; not on cores, where they are in
// cache.
TEST(cost, epilogues_take_time_on_a_chip) {
  gemm_shape plain = cube(4096), with_epilogue = plain;
  with_epilogue.has_epilogue = true;
  const double pass = 2 * 4.0 * 4096 * 4096 / h200().memory_rate;
  EXPECT_NEAR(gemm_cost(h200(), with_epilogue).seconds - gemm_cost(h200(), plain).seconds, pass, pass / 1e6);
  EXPECT_NEAR(gemm_seconds(h200(), with_epilogue) - gemm_seconds(h200(), plain), pass + h200().launch_gap, pass / 1e6);
  // One kernel applies the epilogue to all GEMMs of a call.
  const std::vector<gemm_shape> plain_ones(64, gemm_shape{64, 64, 64}), ended_ones = [&] {
    std::vector<gemm_shape> list = plain_ones;
    for (gemm_shape &g : list) g.has_epilogue = true;
    return list;
  }();
  const double more = group_seconds(h200(), ended_ones) - group_seconds(h200(), plain_ones);
  EXPECT_GT(more, h200().launch_gap);
  EXPECT_LT(more, 2 * h200().launch_gap);
  for (gemm_shape *g : {&plain, &with_epilogue}) g->in_type = g->out_type = SG_DTYPE_BF16;
  EXPECT_EQ(gemm_seconds(h200(), with_epilogue), gemm_seconds(h200(), plain)) << "part of a GEMM of 16 bits";
  with_epilogue.m = plain.m = 4097;
  EXPECT_GT(gemm_seconds(h200(), with_epilogue), gemm_seconds(h200(), plain)) << "no multiple of 8";
  device_model cores = h200();
  cores.lanes_are_cores = true;
  EXPECT_EQ(gemm_seconds(cores, with_epilogue), gemm_seconds(cores, plain));
}

TEST(cost, thin_gemms_are_bound_by_memory) {
  const kernel_cost cost = gemm_cost(h200(), {1 << 20, 1, 1024, 1, SG_DTYPE_F32, SG_DTYPE_F32, SG_COMPUTE_TF32, false});
  EXPECT_GE(cost.seconds, 4.0 * (1 << 20) * 1024 / 4.0e12);
  EXPECT_GT(cost.memory_share, 0.5);
}

TEST(cost, arithmetic_is_never_less_accurate_than_asked) {
  const auto rate_of = [&](sg_compute c) { return gemm_rate_of(h200(), SG_DTYPE_F32, c); };
  EXPECT_EQ(rate_of(SG_COMPUTE_EXACT), 51e12);
  EXPECT_EQ(rate_of(SG_COMPUTE_3XTF32), 129e12);
  EXPECT_EQ(rate_of(SG_COMPUTE_BF16X3), 175e12);
  EXPECT_EQ(rate_of(SG_COMPUTE_TF32), 416e12);
  EXPECT_EQ(rate_of(SG_COMPUTE_BF16), 416e12);
  EXPECT_EQ(gemm_rate_of(h200(), SG_DTYPE_F64, SG_COMPUTE_BF16), 64e12);
  EXPECT_EQ(gemm_rate_of(h200(), SG_DTYPE_F8_E4M3, SG_COMPUTE_EXACT), 799e12);
  EXPECT_EQ(gemm_rate_of(h200(), SG_DTYPE_F8_E4M3, SG_COMPUTE_F8), 1580e12);
  EXPECT_EQ(gemm_rate_of(h200(), SG_DTYPE_F8_E5M2, SG_COMPUTE_F8), 799e12);
  device_model bare = h200();
  bare.rates.clear();
  EXPECT_THROW(gemm_cost(bare, cube(8)), error);
}

TEST(cost, staging_by_workers) {
  EXPECT_DOUBLE_EQ(staging_rate_of(h200(), {4, 0}), 26e9);
  EXPECT_DOUBLE_EQ(staging_rate_of(h200(), {12, 0}), 47e9);
  EXPECT_DOUBLE_EQ(staging_rate_of(h200(), {2, 0}), 13e9);
  EXPECT_DOUBLE_EQ(staging_rate_of(h200(), {6, 0}), 33.5e9);
  EXPECT_DOUBLE_EQ(staging_rate_of(h200(), {100, 0}), 47e9);
  for (int unpacking = 0; unpacking <= 12; ++unpacking)
    EXPECT_EQ(staging_rate_of(h200(), {12, 0}), staging_rate_of(h200(), {12 - unpacking, unpacking})) << unpacking;
}

// As measured with 16 workers on two H200 of one host, and with half as many.
TEST(cost, staging_by_direction) {
  const std::vector<staging_rate> rates = {{8, 51e9, 49e9, 49e9}, {16, 85e9, 54e9, 72e9}};
  EXPECT_DOUBLE_EQ(85e9, staging_rate_of(rates, {16, 0}));
  EXPECT_DOUBLE_EQ(54e9, staging_rate_of(rates, {0, 16}));
  EXPECT_DOUBLE_EQ(72e9, staging_rate_of(rates, {8, 8}));
  EXPECT_DOUBLE_EQ(63e9, staging_rate_of(rates, {4, 12}));
  EXPECT_DOUBLE_EQ(49e9 / 8, staging_rate_of(rates, {0, 1}));
  EXPECT_DOUBLE_EQ((54e9 + 49e9) / 2, staging_rate_of(rates, {0, 12}));
  const std::vector<staging_rate> of_both = {{8, 60e9, 40e9}};
  EXPECT_DOUBLE_EQ(50e9, staging_rate_of(of_both, {4, 4})) << "the mean of both";
}

TEST(cost, bound_is_the_slowest_of_link_directions_and_arithmetic) {
  problem_form f;
  f.m = f.n = f.k = 8192;
  f.a = f.b = f.c = SG_MEMORY_PINNED;
  problem p = make(f);
  const double matrix = 8192.0 * 8192 * 4;
  const auto bound = [&] { return bound_seconds(h200(), {&p, 1}); };
  EXPECT_DOUBLE_EQ(bound(), p.flops() / 51e12);
  p.compute = SG_COMPUTE_TF32;
  EXPECT_DOUBLE_EQ(bound(), 2 * matrix / 55e9);
  p.a.space = p.b.space = SG_MEMORY_DEVICE;
  EXPECT_DOUBLE_EQ(bound(), matrix / 55.2e9);
  p.beta_zero = false;
  EXPECT_DOUBLE_EQ(bound(), 2 * matrix / (51.6e9 + 50.6e9));
  p.c.space = SG_MEMORY_DEVICE;
  EXPECT_DOUBLE_EQ(bound(), p.flops() / 416e12);
  EXPECT_DOUBLE_EQ(bound_seconds(h200(), std::vector<problem>{p, p}), 2 * p.flops() / 416e12);
  const device_model two = cores(2);
  p.compute = SG_COMPUTE_EXACT;
  EXPECT_DOUBLE_EQ(bound_seconds(two, {&p, 1}), p.flops() / 200e9);
}

}  // namespace
}  // namespace sg::test
