// SPDX-License-Identifier: Apache-2.0
// Schedules of resident problems: not split, split in every way, grouped.
#include "plan/gemm/resident/split.hpp"

#include "execute.hpp"
#include "plan/gemm/resident/direct.hpp"
#include "plan/gemm/resident/grouped.hpp"

namespace sg::test {
namespace {

constexpr sg_transpose real_ops[] = {SG_TRANSPOSE_N, SG_TRANSPOSE_T};
constexpr sg_transpose all_ops[] = {SG_TRANSPOSE_N, SG_TRANSPOSE_T, SG_TRANSPOSE_C};

struct types {
  sg_dtype in, out;
};
constexpr types all_types[] = {
    {SG_DTYPE_F64, SG_DTYPE_F64},     {SG_DTYPE_F32, SG_DTYPE_F32},     {SG_DTYPE_C64, SG_DTYPE_C64},
    {SG_DTYPE_C128, SG_DTYPE_C128},   {SG_DTYPE_F16, SG_DTYPE_F16},     {SG_DTYPE_F16, SG_DTYPE_F32},
    {SG_DTYPE_BF16, SG_DTYPE_BF16},   {SG_DTYPE_BF16, SG_DTYPE_F32},    {SG_DTYPE_I8, SG_DTYPE_I32},
    {SG_DTYPE_F8_E4M3, SG_DTYPE_F32}, {SG_DTYPE_F8_E5M2, SG_DTYPE_BF16}};

// Calls test(problem form) for the forms that a resident builder can get: each without epilogue, and with one of the
// epilogues.
template <class Test>
void for_forms(Test &&test_one) {
  int next = 0;
  const auto test = [&](problem_form f) {
    test_one(f);
    f.end = ending(1 + next++ % (endings - 1));
    test_one(f);
  };
  for (types t : all_types)
    for (sg_transpose op_a : all_ops)
      for (sg_transpose op_b : all_ops) {
        if (!is_complex(t.in) && (op_a == SG_TRANSPOSE_C || op_b == SG_TRANSPOSE_C)) continue;
        for (std::int64_t pad : {0, 3})
          for (bool beta_zero : {true, false}) {
            problem_form f;
            f.op_a = op_a, f.op_b = op_b, f.pad = pad, f.in = t.in, f.out = t.out, f.beta_zero = beta_zero;
            test(f);
            f.batch = 3;
            for (batch_form form : {batch_form::strided, batch_form::gapped, batch_form::interleaved,
                                    batch_form::shared_a, batch_form::shared_b, batch_form::pointers}) {
              f.batching = form;
              f.m = 5, f.n = 4, f.k = 6;
              test(f);
            }
          }
      }
}

TEST(direct, computes_every_form) {
  for_forms([](const problem_form &f) { EXPECT_TRUE(is_right(build_direct(make(f)), make(f))) << text(f); });
}

TEST(direct, scales_without_a_gemm) {
  for_forms([](problem_form f) {
    f.no_multiply = true;
    EXPECT_TRUE(is_right(build_direct(make(f)), make(f))) << text(f);
    f.k = 0;
    EXPECT_TRUE(is_right(build_direct(make(f)), make(f))) << text(f);
  });
}

TEST(grid_split, computes_every_form) {
  for_forms([](const problem_form &f) {
    for (grid_split grid : {grid_split{2, 1, 1}, grid_split{1, 3, 1}, grid_split{3, 2, 1}, grid_split{100, 100, 1}})
      EXPECT_TRUE(is_right(build_grid_split(make(f), grid, 2), make(f))) << text(f);
    if (accumulator_of(f.out) == f.out) {
      EXPECT_TRUE(is_right(build_grid_split(make(f), {2, 2, 3}, 3), make(f))) << text(f);
    }
    problem_form scaled = f;
    scaled.no_multiply = true;
    EXPECT_TRUE(is_right(build_grid_split(make(scaled), {2, 2, 1}, 3), make(scaled))) << text(scaled);
  });
}

TEST(batch_split, computes_every_form) {
  for_forms([](const problem_form &f) {
    for (std::int64_t parts : {1, 2, 3})
      EXPECT_TRUE(is_right(build_batch_split(make(f), parts, 2), make(f))) << text(f);
    problem_form scaled = f;
    scaled.no_multiply = true;
    EXPECT_TRUE(is_right(build_batch_split(make(scaled), 2, 2), make(scaled))) << text(scaled);
  });
}

TEST(depth_split, computes_every_form) {
  for_forms([](const problem_form &f) {
    for (std::int64_t parts : {2, 3, 5})
      for (int reduce_lanes : {1, 3}) {
        const schedule s = build_depth_split(make(f), parts, 3, reduce_lanes);
        EXPECT_TRUE(is_right(s, make(f))) << text(f);
        EXPECT_LE(s.device_bytes, depth_split_bytes(make(f), parts));
      }
  });
}

TEST(depth_split, sums_in_one_order) {
  problem_form f;
  f.k = 40;
  const problem p = make(f);
  // Values whose sum depends on the order of addition: the same bits in every order of execution.
  bound_problem before = bind(p, 7);
  for (std::int64_t l = 0; l < p.k; ++l)
    for (std::int64_t i = 0; i < p.m; ++i) before.a.set(0, i, l, 1.0 / double(3 + i + 7 * l));
  const schedule s = build_depth_split(p, 4, 4, 1);
  std::vector<bound_problem> first{before};
  run(s, first, 1);
  for (std::uint32_t seed = 2; seed < 20; ++seed) {
    std::vector<bound_problem> again{before};
    run(s, again, seed);
    EXPECT_TRUE(again[0].c == first[0].c);
  }
}

TEST(cut, covers_without_gaps_or_empty_parts) {
  for (std::int64_t total : {1, 2, 15, 16, 17, 31, 100, 1000003})
    for (std::int64_t parts : {1, 2, 3, 7, 64, 2000000})
      for (std::int64_t grain : {1, 16}) {
        std::int64_t end = 0;
        const auto ranges = cut(total, parts, grain);
        EXPECT_LE(std::int64_t(ranges.size()), std::min(parts, total));
        for (const range &r : ranges) {
          EXPECT_EQ(r.first, end);
          EXPECT_GT(r.size, 0);
          end = r.end();
        }
        EXPECT_EQ(end, total);
      }
  // Every child gets something even where no multiple of the grain is left.
  EXPECT_EQ(cut(10, 3, 16).size(), 3u);
  EXPECT_EQ(cut(std::int64_t(1) << 62, 3).back().end(), std::int64_t(1) << 62);
}

std::vector<problem> mixed_group(bool from_host) {
  std::vector<problem> problems;
  const sg_memory_kind place = from_host ? SG_MEMORY_PAGEABLE : SG_MEMORY_DEVICE;
  for (int i = 0; i < 11; ++i) {
    problem_form f;
    f.m = 1 + 5 * i % 17, f.n = 1 + 7 * i % 13, f.k = 1 + 3 * i % 19;
    f.op_a = real_ops[i % 2], f.op_b = real_ops[i / 2 % 2];
    f.in = all_types[i % std::size(all_types)].in, f.out = all_types[i % std::size(all_types)].out;
    f.beta_zero = i % 3 == 0, f.no_multiply = i % 5 == 4;
    f.batch = 1 + i % 3;
    f.end = ending(i % endings), f.bias = i % 3 ? place : SG_MEMORY_DEVICE;
    f.a = i % 2 ? place : SG_MEMORY_DEVICE, f.b = place, f.c = i % 4 ? place : SG_MEMORY_DEVICE;
    problems.push_back(make(f));
  }
  return problems;
}

TEST(grouped, computes_problems_of_different_shapes) {
  const auto problems = mixed_group(false);
  for (int lanes : {1, 2, 4}) EXPECT_TRUE(is_right(build_grouped(problems, cores(lanes), lanes), problems));
}

TEST(grouped, chains_schedules_that_share_memory) {
  const auto problems = mixed_group(false);
  std::vector<schedule> parts;
  std::int64_t largest = 0;
  parts.reserve(problems.size());
  std::vector<const schedule *> list;
  for (const problem &p : problems) {
    list.push_back(&parts.emplace_back(p.no_multiply ? build_direct(p)
                                                     : build_depth_split(p, std::min<std::int64_t>(2, p.k), 2, 1)));
    largest = std::max(largest, parts.back().device_bytes);
  }
  for (std::int64_t room : {1, 2, 3, 100}) {
    const schedule s = chain(problems, list, room * largest, 2);
    EXPECT_LE(s.device_bytes, room * largest);
    for (std::uint32_t seed = 1; seed < 6; ++seed) EXPECT_TRUE(is_right(s, problems, seed)) << room;
  }
}

}  // namespace
}  // namespace sg::test
