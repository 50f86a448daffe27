// SPDX-License-Identifier: Apache-2.0
// The automatic choice: always right, never slower by its own model than a forced choice, obedient when forced.
#include "plan/planner.hpp"

#include <ctime>

#include "../support/sweep.hpp"
#include "base/error.hpp"
#include "execute.hpp"
#include "plan/form/command_form.hpp"
#include "plan/schedule/simulate.hpp"

namespace sg::test {
namespace {

schedule plan(const problem &p, const device_model &m, const plan_request &r = {}) {
  const schedule s = *make_gemm_plan({p}, m, r);
  EXPECT_NEAR(s.predicted_seconds, simulate(s, m).seconds, 1e-12);
  EXPECT_GT(s.bound_seconds, 0);
  return s;
}

problem_form pinned(std::int64_t m, std::int64_t n, std::int64_t k) {
  problem_form f;
  f.m = m, f.n = n, f.k = k;
  f.a = f.b = f.c = SG_MEMORY_PINNED;
  return f;
}

double ratio(const problem_form &f, sg_compute compute = SG_COMPUTE_EXACT) {
  problem p = make(f);
  p.compute = compute;
  const schedule s = plan(p, h200());
  EXPECT_TRUE(check_hazards(s).empty());
  return s.predicted_seconds / s.bound_seconds;
}

TEST(planner, host_to_host_comes_near_the_bound) {
  EXPECT_LE(ratio(pinned(8192, 8192, 8192), SG_COMPUTE_TF32), 1.10);
  EXPECT_LE(ratio(pinned(16384, 16384, 16384), SG_COMPUTE_TF32), 1.10);
  EXPECT_LE(ratio(pinned(8192, 8192, 8192)), 1.10);
  EXPECT_LE(ratio(pinned(16384, 16384, 16384)), 1.10);
  problem_form bf16 = pinned(8192, 8192, 8192);
  bf16.in = bf16.out = SG_DTYPE_BF16;
  EXPECT_LE(ratio(bf16), 1.12);
  bf16.m = bf16.n = bf16.k = 16384;
  EXPECT_LE(ratio(bf16), 1.12);
  problem_form f64 = pinned(30000, 30000, 3000);
  f64.in = f64.out = SG_DTYPE_F64;
  EXPECT_LE(ratio(f64), 1.10);
  f64.m = f64.n = 1000, f64.k = 5000;
  EXPECT_LE(ratio(f64), 1.10);
}

TEST(planner, a_second_stream_where_arithmetic_is_the_bound) {
  problem p = make(pinned(8192, 8192, 8192));
  EXPECT_EQ(plan(p, h200()).lanes[int(lane_kind::compute)], 2);
  p.compute = SG_COMPUTE_TF32;  // the link is the bottleneck
  EXPECT_EQ(plan(p, h200()).lanes[int(lane_kind::compute)], 1);
}

TEST(planner, predictions_stay_above_the_bound) {
  // A model without costs would give 1: the simulated losses are real.
  EXPECT_GT(ratio(pinned(8192, 8192, 8192), SG_COMPUTE_TF32), 1.02);
  EXPECT_GT(ratio(pinned(512, 512, 512)), 1.5);
}

TEST(planner, each_byte_moves_once_while_memory_lasts) {
  for (sg_memory_kind kind : {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE}) {
    problem_form f = pinned(8192, 8192, 8192);
    f.a = f.b = f.c = kind;
    const schedule s = plan(make(f), h200());
    EXPECT_EQ(s.bytes_in, 2 * 8192.0 * 8192 * 4);
    EXPECT_EQ(s.bytes_out, 8192.0 * 8192 * 4);
  }
}

TEST(planner, out_of_core_stays_within_its_limit) {
  problem_form f = pinned(32768, 32768, 32768);
  plan_request r;
  r.memory_limit = std::int64_t(4) << 30;
  const schedule s = plan(make(f), h200(), r);
  EXPECT_LE(s.device_bytes, r.memory_limit);
  EXPECT_LE(s.predicted_seconds / s.bound_seconds, 1.10);
  EXPECT_TRUE(check_hazards(s).empty());
}

TEST(planner, chosen_is_never_slower_than_forced) {
  std::vector<problem> problems;
  for (auto [m, n, k] : {std::array<int, 3>{16, 16, 16},
                         {64, 64, 1024},
                         {64, 64, 100000},
                         {512, 512, 512},
                         {1000, 30, 2000},
                         {2048, 2048, 2048},
                         {30000, 64, 64},
                         {100, 5000, 700}})
    for (std::int64_t batch : {1, 6})
      for (bool no_multiply : {false, true}) {
        problem_form f;
        f.m = m, f.n = n, f.k = k, f.batch = batch, f.no_multiply = no_multiply, f.beta_zero = batch == 1;
        problems.push_back(make(f));
      }
  for (const device_model &m : {h200(), shipped_model("pcie3"), cores(2), cores(6)})
    for (const problem &p : problems) {
      const double chosen = plan(p, m).predicted_seconds;
      plan_request r;
      r.split = split_kind::none;
      const double whole = plan(p, m, r).predicted_seconds;
      // Cores get short commands even where a long one would be a little faster.
      if (whole > 0.2 && m.lanes_are_cores) continue;
      EXPECT_LE(chosen, whole * 1.0001);
      if (m.lanes_are_cores) continue;  // small GEMMs are not split although cores are idle
      // Streams that share a chip must promise a good gain, because they keep less of it.
      const double promised = chosen == whole ? 0.6 : 1 / 1.002;
      for (split_kind kind : {split_kind::m, split_kind::n, split_kind::k, split_kind::batch})
        for (int parts : {2, 3, 4}) {
          r.split = kind, r.parts = parts;
          try {
            EXPECT_LE(chosen * promised, plan(p, m, r).predicted_seconds);
          } catch (const error &e) {
            EXPECT_EQ(e.status(), SG_STATUS_UNSUPPORTED);
          }
        }
    }
}

// A row times a matrix has few operations; memory is its bound, and a core has its share of that.
TEST(planner, cores_share_what_memory_bounds) {
  problem_form f;
  f.m = 1, f.n = 50000, f.k = 600;  // 120 MB
  for (int count : {2, 6}) {
    const schedule s = plan(make(f), cores(count));
    EXPECT_EQ(s.lanes[int(lane_kind::compute)], count);
    EXPECT_LE(s.predicted_seconds, 1.1 * s.bound_seconds);
  }
  f.n = 10000;  // 24 MB: three parts
  EXPECT_EQ(plan(make(f), cores(6)).lanes[int(lane_kind::compute)], 3);
  f.n = 6000;
  EXPECT_EQ(plan(make(f), cores(6)).lanes[int(lane_kind::compute)], 1);
}

// Of a conversion to a quarter of the bytes the operand is what costs.
TEST(planner, cores_share_a_command_by_its_largest_operand) {
  const std::int64_t rows = 256, cols = 256;
  command_form f;
  f.what = ops::convert{}, f.strategy = "convert";
  const auto set = [&](std::size_t view, sg_dtype type, share needed) {
    command_form::parameter &made = f.parameters[view];
    made.given = true, made.needed = needed;
    made.stored.rows = made.stored.ld = rows, made.stored.cols = cols, made.stored.type = type;
  };
  set(ops::convert::c, SG_DTYPE_BF16, share::same);
  const device_model four = cores(4);
  const plan_request none;
  const plan_terms terms{four, none, 4, four.memory_bytes};
  for (const auto &[type, parts] : {std::pair{SG_DTYPE_F64, 2}, {SG_DTYPE_F32, 1}}) {
    set(ops::convert::a, type, share::same);
    const schedule s = plan_of(f, terms);
    EXPECT_EQ(s.commands.size(), std::size_t(parts)) << s.strategy;
    EXPECT_DOUBLE_EQ(s.bound_seconds, double(rows * cols * (2 + size_of(type))) / four.memory_rate);
  }
  f.parameters[ops::convert::a].stored.cols = 2 * cols;
  EXPECT_EQ(description_of(f), "convert of 256 x 512, bf16");
  set(ops::convert::a, SG_DTYPE_F64, share::whole);
  EXPECT_EQ(plan_of(f, terms).commands.size(), 1u);
}

TEST(planner, streaming_beats_the_forced_alternatives) {
  for (auto f : {pinned(2048, 2048, 2048), pinned(5000, 700, 900), pinned(300, 300, 20000)})
    for (sg_transpose op : {SG_TRANSPOSE_N, SG_TRANSPOSE_T})
      for (sg_memory_kind kind : {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE}) {
        f.op_b = op;
        f.a = f.b = f.c = kind;
        const problem p = make(f);
        const double chosen = plan(p, h200()).predicted_seconds;
        plan_request r;
        for (split_kind split : {split_kind::none, split_kind::m, split_kind::n, split_kind::k}) {
          r.split = split;
          EXPECT_LE(chosen, plan(p, h200(), r).predicted_seconds) << text(f) << " split " << int(split);
        }
      }
}

TEST(planner, a_large_resident_gemm_is_not_split) {
  problem_form f;
  f.m = f.n = f.k = 8192;
  EXPECT_EQ(plan(make(f), h200()).strategy, "direct");
  f.m = f.n = f.k = 2048;
  EXPECT_EQ(plan(make(f), h200()).strategy, "direct");
  f.m = f.n = f.k = 64;
  EXPECT_EQ(plan(make(f), h200()).strategy, "direct");
}

// In one batch an item's depth is not shared among units: 8 of these take cuBLAS 623 us so and 97 on 4 streams
// (small.json).
TEST(planner, few_deep_items_are_single_gemms) {
  problem_form f;
  f.m = f.n = 64, f.k = 16384;
  for (const int batch : {2, 3, 8, 20}) {
    f.batch = batch;
    const schedule s = plan(make(f), h200());
    EXPECT_EQ(s.strategy, "split-batch x" + std::to_string(batch));
    EXPECT_EQ(s.commands.size(), std::size_t(batch));
  }
  f.batch = 512;
  EXPECT_EQ(plan(make(f), h200()).strategy, "direct");
  f.batch = 8, f.k = 256;
  EXPECT_EQ(plan(make(f), h200()).strategy, "direct");
}

TEST(planner, cores_share_gemms_from_512_cubed) {
  problem_form f;
  f.m = f.n = f.k = 256;
  EXPECT_EQ(plan(make(f), cores(2)).strategy, "direct");
  f.m = f.n = f.k = 512;
  EXPECT_EQ(plan(make(f), cores(2)).commands.size(), 2u);
  f.m = 4096, f.n = 512;
  EXPECT_EQ(plan(make(f), cores(2)).strategy, "split-m x2");
  f.m = 512, f.n = 4096;
  EXPECT_EQ(plan(make(f), cores(2)).strategy, "split-n x2");
  f.m = f.n = 16, f.k = 1 << 20;
  EXPECT_EQ(plan(make(f), cores(8)).strategy.substr(0, 7), "split-k");
  f.m = f.n = 64, f.k = 1024, f.batch = 512;
  EXPECT_EQ(plan(make(f), cores(2)).strategy, "split-batch x2");
}

// One core cannot use all of the memory's rate, so a batch bound by memory is shared like one bound by arithmetic.
TEST(planner, cores_share_a_batch_that_memory_bounds) {
  problem_form f;
  f.m = f.n = f.k = 32, f.batch = 10000;
  device_model m = cores(2);
  m.memory_rate = 10e9;  // 12 ms; the arithmetic takes two cores 3.3
  const schedule s = plan(make(f), m);
  EXPECT_EQ(s.strategy, "split-batch x2");
  plan_request whole;
  whole.split = split_kind::none;
  EXPECT_NEAR(plan(make(f), m, whole).predicted_seconds / s.predicted_seconds, 2, 0.01);
}

// A latency request splits a GEMM into independent children; their number depends on the problem and the cores alone.
TEST(planner, cores_share_a_short_gemm_with_a_latency_request) {
  plan_request waited;
  waited.latency = true;
  const auto parts = [&](std::int64_t m, std::int64_t n, std::int64_t k, int lanes, std::int64_t batch = 1) {
    problem_form f;
    f.m = m, f.n = n, f.k = k, f.batch = batch;
    f.in = f.out = SG_DTYPE_F64;
    const schedule s = plan(make(f), cores(lanes), waited);
    EXPECT_TRUE(check_hazards(s).empty()) << s.strategy;
    EXPECT_TRUE(s.waits.empty()) << s.strategy;
    EXPECT_EQ(s.device_bytes, 0) << s.strategy;
    return std::int64_t(s.commands.size());
  };
  for (const int lanes : {2, 4, 16, 64}) {
    EXPECT_EQ(parts(64, 64, 64, lanes), 1);
    EXPECT_EQ(parts(16, 16, 16, lanes, 8), 1);
    EXPECT_GE(parts(128, 128, 128, lanes), 2);
    EXPECT_GE(parts(1000, 1, 1000, lanes), 2);
    EXPECT_GE(parts(1, 1000, 1000, lanes), 2);
    EXPECT_GE(parts(16, 16, 16, lanes, 1000), 2);
    for (const std::int64_t size : {128, 256, 512}) EXPECT_LE(parts(size, size, size, lanes), 16);
    EXPECT_EQ(parts(256, 256, 256, lanes) % std::min(lanes, 16), 0);
    EXPECT_EQ(parts(1, 1, 100000, lanes), 1);
  }
  EXPECT_EQ(parts(256, 256, 256, 1), 1);
}

TEST(planner, a_latency_request_changes_nothing_elsewhere) {
  plan_request waited;
  waited.latency = true;
  problem_form f;
  f.m = f.n = f.k = 256;
  EXPECT_EQ(plan(make(f), h200(), waited).commands.size(), plan(make(f), h200()).commands.size());
  f.m = f.n = f.k = 2048;
  EXPECT_EQ(plan(make(f), cores(2), waited).strategy, plan(make(f), cores(2)).strategy);
  f.m = f.n = f.k = 256, f.batching = batch_form::pointers, f.batch = 2;
  EXPECT_EQ(plan(make(f), cores(2), waited).strategy, plan(make(f), cores(2)).strategy);
}

TEST(planner, commands_on_cores_are_short) {
  for (auto [m, n, k, batch] : {std::array<int, 4>{8192, 8192, 8192, 1},
                                {256, 256, 4000000, 1},
                                {4096, 4096, 4096, 16},
                                {100000, 300, 20000, 1}}) {
    problem_form f;
    f.m = m, f.n = n, f.k = k, f.batch = batch;
    for (int lanes : {1, 2, 7}) {
      const schedule s = plan(make(f), cores(lanes));
      const timeline t = simulate(s, cores(lanes));
      for (const interval &i : t.commands) EXPECT_LE(i.end - i.start, 0.35) << s.strategy;
      EXPECT_TRUE(check_hazards(s).empty()) << s.strategy;
    }
  }
}

TEST(planner, forced_choices_are_obeyed) {
  problem_form f;
  f.batch = 4;
  const auto strategy = [&](split_kind kind, int parts, const device_model &m) {
    plan_request r;
    r.split = kind, r.parts = parts;
    return plan(make(f), m, r).strategy;
  };
  for (const device_model &m : {h200(), cores(4)}) {
    EXPECT_EQ(strategy(split_kind::none, 0, m), "direct");
    EXPECT_EQ(strategy(split_kind::m, 3, m), "split-m x3");
    EXPECT_EQ(strategy(split_kind::n, 5, m), "split-n x5");
    EXPECT_EQ(strategy(split_kind::k, 2, m), "split-k x2");
    EXPECT_EQ(strategy(split_kind::batch, 4, m), "split-batch x4");
    EXPECT_EQ(strategy(split_kind::automatic, 1, m), "direct");
    EXPECT_NE(strategy(split_kind::automatic, 3, m).find("x3"), std::string::npos);
  }
  plan_request r;
  r.streams = 1;
  f.m = f.n = f.k = 2048;
  EXPECT_LE(plan(make(f), cores(4), r).lanes[int(lane_kind::compute)], 1);
}

sg_status refusal(const std::vector<problem> &problems, const device_model &m, const plan_request &r,
                  const std::string &says) {
  try {
    make_gemm_plan(problems, m, r);
  } catch (const error &e) {
    EXPECT_NE(std::string(e.what()).find(says), std::string::npos) << e.what();
    return e.status();
  }
  return SG_STATUS_OK;
}

TEST(planner, infeasible_requests_are_refused) {
  problem_form f;
  plan_request r;
  EXPECT_EQ(refusal({}, h200(), r, "no problem"), SG_STATUS_INVALID_ARGUMENT);
  r.parts = -1;
  EXPECT_EQ(refusal({make(f)}, h200(), r, "parts"), SG_STATUS_INVALID_ARGUMENT);
  r = {};
  r.memory_limit = -1;
  EXPECT_EQ(refusal({make(f)}, h200(), r, "memory_limit"), SG_STATUS_INVALID_ARGUMENT);
  r = {};
  r.split = split_kind::none, r.parts = 2;
  EXPECT_EQ(refusal({make(f)}, h200(), r, "2 parts"), SG_STATUS_INVALID_ARGUMENT);
  for (sg_memory_kind place : {SG_MEMORY_DEVICE, SG_MEMORY_PINNED}) {
    f.a = f.b = f.c = place;
    r.split = split_kind::n, r.parts = 12;
    EXPECT_EQ(refusal({make(f)}, h200(), r, "11"), SG_STATUS_UNSUPPORTED);
    r.split = split_kind::batch, r.parts = 0;
    EXPECT_EQ(refusal({make(f)}, h200(), r, "2 parts"), SG_STATUS_UNSUPPORTED);
    f.no_multiply = true;
    r.split = split_kind::k;
    EXPECT_EQ(refusal({make(f)}, h200(), r, "2 parts"), SG_STATUS_UNSUPPORTED);
    f.no_multiply = false;
  }
  r = {};
  r.memory_limit = 100;
  EXPECT_EQ(refusal({make(f)}, h200(), r, "needs at least 1792 bytes"), SG_STATUS_OUT_OF_MEMORY);
  f.a = f.b = f.c = SG_MEMORY_DEVICE;
  r.split = split_kind::k;
  EXPECT_EQ(refusal({make(f)}, h200(), r, "the limit is 100"), SG_STATUS_OUT_OF_MEMORY);
  device_model bare = h200();
  bare.rates.clear();
  EXPECT_EQ(refusal({make(f)}, bare, {}, "no f32 GEMM"), SG_STATUS_UNSUPPORTED);
}

// Every automatic or forced choice, on small problems, computes the GEMM.
TEST(planner, every_choice_is_right) {
  sweep cases(5);
  std::uint32_t seed = 1;
  for (sg_memory_kind kind : {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE, SG_MEMORY_DEVICE})
    for (int subset = 1; subset < 8; ++subset)
      for (std::int64_t batch : {1, 4})
        for (batch_form form : {batch_form::strided, batch_form::shared_a, batch_form::pointers})
          for (bool beta_zero : {true, false})
            for (bool no_multiply : {true, false}) {
              if (no_multiply && form != batch_form::strided) continue;
              problem_form f;
              f.m = 40, f.n = 37, f.k = 35, f.batch = batch, f.batching = form;
              f.op_a = SG_TRANSPOSE_T, f.beta_zero = beta_zero, f.no_multiply = no_multiply;
              if (subset & 1) f.a = kind;
              if (subset & 2) f.b = kind;
              if (subset & 4) f.c = kind;
              const problem p = make(f);
              for (split_kind split : {split_kind::automatic, split_kind::none, split_kind::m, split_kind::n,
                                       split_kind::k, split_kind::batch})
                for (std::int64_t limit : {std::int64_t(0), std::int64_t(8192)}) {
                  if (!cases.tries_next()) continue;
                  plan_request r;
                  r.split = split, r.memory_limit = limit;
                  if (limit) r.tile_k = 9;
                  try {
                    const schedule s = plan(p, h200(), r);
                    if (limit) {
                      EXPECT_LE(s.device_bytes, limit);
                    }
                    EXPECT_TRUE(is_right(s, p, seed++)) << text(f) << " split " << int(split);
                  } catch (const error &e) {
                    EXPECT_NE(e.status(), SG_STATUS_INTERNAL) << e.what();
                    EXPECT_FALSE(split == split_kind::automatic && !limit) << e.what();
                  }
                }
            }
}

// Each problem waits for the one whose memory it reuses, not for all before it.
TEST(planner, a_long_group_from_pageable_memory_has_few_waits) {
  problem_form f;
  f.m = f.n = f.k = 100;
  f.in = f.out = SG_DTYPE_F64;
  f.a = f.b = f.c = SG_MEMORY_PAGEABLE;
  const auto s = make_gemm_plan(std::vector<problem>(300, make(f)), h200(), {});
  EXPECT_LE(s->waits.size(), 8 * s->commands.size());
  EXPECT_EQ(s->lanes[int(lane_kind::staging)], h200().staging_workers);
}

TEST(planner, groups_are_right_wherever_they_lie) {
  std::vector<problem> problems;
  for (int i = 0; i < 9; ++i) {
    problem_form f;
    f.m = 1 + 5 * i, f.n = 40 - 3 * i, f.k = 7 + i, f.batch = 1 + i % 2, f.beta_zero = i % 3 == 0;
    f.no_multiply = i == 4;
    problems.push_back(make(f));
  }
  for (const device_model &m : {h200(), cores(2)}) EXPECT_TRUE(is_right(*make_gemm_plan(problems, m, {}), problems));
  for (std::size_t i = 0; i < problems.size(); ++i)
    if (i != 2) problems[i].a.space = problems[i].c.space = i % 2 ? SG_MEMORY_PAGEABLE : SG_MEMORY_PINNED;
  for (std::int64_t limit : {0, 20000, 40000}) {
    plan_request r;
    r.memory_limit = limit;
    const auto s = make_gemm_plan(problems, h200(), r);
    if (limit) {
      EXPECT_LE(s->device_bytes, limit);
    }
    EXPECT_TRUE(is_right(*s, problems));
    EXPECT_NEAR(s->predicted_seconds, simulate(*s, h200()).seconds, 1e-12);
  }
}

TEST(planner, is_deterministic) {
  const problem p = make(pinned(3000, 3000, 3000));
  const schedule once = plan(p, h200()), again = plan(p, h200());
  EXPECT_EQ(once.strategy, again.strategy);
  EXPECT_EQ(once.commands.size(), again.commands.size());
  EXPECT_EQ(once.waits, again.waits);
  EXPECT_EQ(once.predicted_seconds, again.predicted_seconds);
}

TEST(planner, schedules_stay_small) {
  problem_form f = pinned(32768, 32768, 32768);
  plan_request r;
  for (sg_memory_kind kind : {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE})
    for (std::int64_t limit : {100, 10000, 1 << 16}) {
      f.a = f.b = f.c = kind;
      r.memory_limit = limit;
      const std::clock_t start = std::clock();  // of this process: others may load the machine
      EXPECT_EQ(refusal({make(f)}, h200(), r, "for at most 200000 commands), the limit is " + std::to_string(limit)),
                SG_STATUS_OUT_OF_MEMORY);
      EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC / 4);
    }
  f.a = f.b = f.c = SG_MEMORY_PINNED;
  r = {};
  r.tile_m = r.tile_n = r.tile_k = 1;
  EXPECT_EQ(refusal({make(f)}, h200(), r, "tiles this small"), SG_STATUS_INVALID_ARGUMENT);
  f.a = f.b = f.c = SG_MEMORY_DEVICE;
  f.m = f.n = f.k = std::int64_t(1) << 20;
  EXPECT_LT(plan(make(f), cores(2)).commands.size(), 100000u);
}

// The memory that a refusal names is enough, and a little less is not.
TEST(planner, the_memory_named_by_a_refusal_is_enough) {
  const auto needed = [](const problem &p, std::int64_t limit) -> std::int64_t {
    plan_request r;
    r.memory_limit = limit;
    try {
      make_gemm_plan({p}, h200(), r);
    } catch (const error &e) {
      long long bytes = 0;
      EXPECT_EQ(std::sscanf(e.what(), "this problem needs at least %lld", &bytes), 1) << e.what();
      return bytes;
    }
    return 0;
  };
  sweep cases(5);
  for (auto [m, n, k] : {std::array<int, 3>{8192, 8192, 8192}, {13, 11, 17}, {100000, 3, 70}, {1, 1, 500000}})
    for (sg_dtype type : {SG_DTYPE_F32, SG_DTYPE_BF16})
      for (int subset = 1; subset < 8; ++subset)
        for (std::int64_t batch : {1, 3}) {
          if (type == SG_DTYPE_BF16 && m != 13) continue;
          if (!cases.tries_next()) continue;
          problem_form f;
          f.m = m, f.n = n, f.k = k, f.in = f.out = type, f.batch = batch, f.beta_zero = false;
          if (subset & 1) f.a = SG_MEMORY_PINNED;
          if (subset & 2) f.b = SG_MEMORY_PAGEABLE;
          if (subset & 4) f.c = SG_MEMORY_PINNED;
          f.end = ending((subset + int(batch)) % endings), f.bias = SG_MEMORY_PINNED;
          const std::int64_t bytes = needed(make(f), 1);
          EXPECT_GT(bytes, 0);
          EXPECT_EQ(needed(make(f), bytes - 1), bytes) << text(f);
          EXPECT_EQ(needed(make(f), bytes), 0) << text(f);
        }
}

TEST(planner, a_caller_s_limit_is_used_in_full) {
  device_model m = h200();
  problem_form f = pinned(512, 512, 512);
  m.memory_limit = 100;
  EXPECT_EQ(refusal({make(f)}, m, {}, "the limit is 100"), SG_STATUS_OUT_OF_MEMORY);
  plan_request r;
  r.memory_limit = 101;
  EXPECT_EQ(refusal({make(f)}, m, r, "the limit is 100"), SG_STATUS_OUT_OF_MEMORY);
  r.memory_limit = 99;
  EXPECT_EQ(refusal({make(f)}, m, r, "the limit is 99"), SG_STATUS_OUT_OF_MEMORY);
}

// Enormous batches and groups are planned in time linear in their size, or refused at once.
TEST(planner, many_items_and_many_problems) {
  const std::clock_t start = std::clock();
  problem_form f;
  f.m = f.n = f.k = 32;
  const std::vector<problem> group(20000, make(f));
  EXPECT_EQ(make_gemm_plan(group, cores(2), {})->commands.size(), group.size());
  f.a = f.b = f.c = SG_MEMORY_PAGEABLE;
  std::vector<problem> streamed;
  for (int i = 0; i < 5000; ++i) {
    f.m = 20 + i % 4;
    streamed.push_back(make(f));
  }
  EXPECT_GE(make_gemm_plan(streamed, h200(), {})->commands.size(), 4 * streamed.size());
  f.batch = std::int64_t(1) << 40;
  f.batching = batch_form::pointers;
  EXPECT_EQ(refusal({make(f)}, h200(), {}, "commands"), SG_STATUS_OUT_OF_MEMORY);
  f.a = f.b = f.c = SG_MEMORY_DEVICE;
  f.no_multiply = true;
  for (const device_model &m : {h200(), cores(2)}) {
    EXPECT_EQ(refusal({make(f)}, m, {}, "commands"), SG_STATUS_OUT_OF_MEMORY);
    EXPECT_EQ(refusal({make(f), make(f)}, m, {}, "commands"), SG_STATUS_OUT_OF_MEMORY);
  }
  f.batching = batch_form::strided;
  f.no_multiply = false;
  EXPECT_LE(plan(make(f), cores(2)).commands.size(), 100000u);
  EXPECT_LT(std::clock() - start, 20 * CLOCKS_PER_SEC);
}

TEST(planner, dimensions_near_the_limits_do_not_overflow) {
  problem_form f = pinned(std::int64_t(1) << 40, 1, 1);
  f.a = SG_MEMORY_DEVICE, f.b = SG_MEMORY_DEVICE;
  plan_request r;
  r.memory_limit = std::int64_t(1) << 30;
  const schedule s = plan(make(f), shipped_model("pcie3"), r);
  EXPECT_LE(s.device_bytes, r.memory_limit);
  // In chunks through pinned slots they would be more commands than any schedule has.
  f.c = SG_MEMORY_PAGEABLE;
  EXPECT_EQ(refusal({make(f)}, shipped_model("pcie3"), r, "more than 1000000 commands"), SG_STATUS_OUT_OF_MEMORY);
}

// Planning names a device of the machine: only that device's model counts.
TEST(planner, plans_for_a_device_of_a_machine) {
  const machine_model machine{{cores(2), h200()}, {}};
  problem_form f;
  f.m = f.n = f.k = 4096;
  const std::vector<problem> problems{make(f)};
  plan_request request;
  request.device = device_index{1};
  const auto on_second = make_gemm_plan(problems, machine, request);
  EXPECT_EQ(make_gemm_plan(problems, h200(), {})->predicted_seconds, on_second->predicted_seconds);
  EXPECT_EQ(make_gemm_plan(problems, cores(2), {})->predicted_seconds,
            make_gemm_plan(problems, machine, {})->predicted_seconds);
  request.device = device_index{2};
  EXPECT_THROW(make_gemm_plan(problems, machine, request), error);
}

}  // namespace
}  // namespace sg::test
