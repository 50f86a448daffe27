// SPDX-License-Identifier: Apache-2.0
// A device with less free memory than its model says, because others hold some or because it is fragmented: GEMMs run
// with smaller tiles, exactly, until nothing fits; then the message names the wanted and the free memory.
#include "support/gemm_case.hpp"
#include "support/gemm_plan.h"
#include "support/harness.hpp"

namespace sg_test {
namespace {

constexpr std::int64_t n = 192;
constexpr std::uint64_t matrix_bytes = sizeof(double) * n * n;  // 288 KiB

// With small integers the GEMM is exact.
gemm_case exact_case(std::int64_t size = n) {
  gemm_case g;
  g.m = g.n = g.k = size;
  g.integers = true;
  return g;
}

sg_plan_prediction plan_of(sg_context *context, const gemm_case &g) {
  sg_gemm_desc desc = make_gemm(nullptr, nullptr, nullptr, g.m, g.n, g.k);
  sg_plan_options where = SG_PLAN_OPTIONS_INIT;
  where.place_a = where.place_b = where.place_c = SG_MEMORY_PAGEABLE;
  plan made;
  EXPECT_OK(create_gemm_plan(context, &desc, &where, made.out()));
  sg_plan_prediction says = SG_PLAN_PREDICTION_INIT;
  EXPECT_OK(sg_plan_get_prediction(made, &says));
  return says;
}

// No failed or earlier job keeps a byte: all free memory can be allocated in one block.
void expect_free(sg_context *context, std::uint64_t bytes) {
  buffer all;
  EXPECT_OK(sg_buffer_create(context, bytes, nullptr, all.out()));
}

TEST(oom_replan, a_resident_gemm_is_tiled) {
  const context context = open_context("sim:h200?memory=4MiB&taken=3600KiB");  // 496 KiB remain of the planned memory
  const sg_plan_prediction planned = plan_of(context, exact_case());
  ASSERT_GE(planned.device_bytes, 3 * matrix_bytes) << "the plan would fit without replanning";
  for (int i = 0; i < 6; ++i) {
    sg_job_statistics did = SG_JOB_STATISTICS_INIT;
    ASSERT_EQ("", run_gemm_case(context, exact_case(), &did)) << i;
    EXPECT_EQ(did.commands, did.commands_run);
    EXPECT_GT(did.commands, planned.commands) << "it was not split further";
  }
  expect_free(context, 496 << 10);
}

TEST(oom_replan, a_streaming_gemm_gets_smaller_tiles) {
  const context context = open_context("sim:h200?memory=768KiB&taken=400KiB");
  const sg_plan_prediction planned = plan_of(context, exact_case());
  ASSERT_LT(planned.device_bytes, 3 * matrix_bytes) << "it should not be streamed";
  ASSERT_GT(planned.device_bytes, 368u << 10) << "the plan would fit without replanning";
  gemm_case g = exact_case();
  g.beta = {1, 0};
  sg_job_statistics did = SG_JOB_STATISTICS_INIT;
  ASSERT_EQ("", run_gemm_case(context, g, &did));
  EXPECT_EQ(did.commands, did.commands_run);
  EXPECT_NE(did.commands, planned.commands);
  expect_free(context, 368 << 10);
}

TEST(oom_replan, free_memory_in_pieces) {
  const context context = open_context("sim:h200?memory=4MiB&largest-piece=200KiB");
  sg_job_statistics did = SG_JOB_STATISTICS_INIT;
  ASSERT_EQ("", run_gemm_case(context, exact_case(), &did));
  EXPECT_GT(did.commands, plan_of(context, exact_case()).commands);
  expect_free(context, 200 << 10);
}

// Memory that is freed is used again.
TEST(oom_replan, freed_memory_is_used_again) {
  const context context = open_context("sim:h200?memory=4MiB");
  const std::int32_t planned = plan_of(context, exact_case()).commands;
  sg_job_statistics did = SG_JOB_STATISTICS_INIT;
  {
    buffer others;
    ASSERT_OK(sg_buffer_create(context, 3600 << 10, nullptr, others.out()));
    ASSERT_EQ("", run_gemm_case(context, exact_case(), &did));
    EXPECT_GT(did.commands, planned);
  }
  ASSERT_OK(sg_context_synchronize(context, SG_FOREVER));  // no job needs the others' memory
  expect_free(context, 4 << 20);
  for (int i = 0; i < 200 && did.commands != planned; ++i) ASSERT_EQ("", run_gemm_case(context, exact_case(), &did));
  EXPECT_EQ(did.commands, planned);
}

// Released buffers are free at once, whichever thread frees them.
TEST(oom_replan, buffers_that_were_released) {
  const context context = open_context("sim:h200?memory=4MiB");
  for (int i = 0; i < 500; ++i) {
    expect_free(context, 3 << 20);
    if (testing::Test::HasFailure()) FAIL() << i;
  }
}

// The pool's memory for later runs is freed before a GEMM is cut into smaller tiles.
TEST(oom_replan, the_pool_is_emptied_first) {
  const context context = open_context("sim:h200?memory=4MiB&taken=2560KiB");
  ASSERT_EQ("", run_gemm_case(context, exact_case(n)));  // the pool keeps its 864 KiB
  const gemm_case larger = exact_case(250);              // 1465 KiB, too large for that block
  sg_job_statistics did = SG_JOB_STATISTICS_INIT;
  ASSERT_EQ("", run_gemm_case(context, larger, &did));
  EXPECT_EQ(did.commands, plan_of(context, larger).commands) << "the tiles are smaller than necessary";
}

// Jobs in order are replanned too.
TEST(oom_replan, in_order) {
  const context context = open_context("sim:h200?memory=4MiB&taken=3600KiB");
  std::vector<double> a(n * n, 2), b(n * n, 3), c(n * n, -1), d(n * n, -1);
  job first, second;
  const sg_gemm_desc ab = make_gemm(a.data(), b.data(), c.data(), n, n, n),
                     cb = make_gemm(c.data(), b.data(), d.data(), n, n, n);
  ASSERT_OK(sg_gemm_async(context, &ab, nullptr, first.out()));
  ASSERT_OK(sg_gemm_async(context, &cb, nullptr, second.out()));
  EXPECT_OK(sg_job_wait(second, SG_FOREVER, nullptr));
  EXPECT_OK(sg_job_wait(first, SG_FOREVER, nullptr));
  EXPECT_EQ(std::vector<double>(n * n, 6.0 * n), c);
  EXPECT_EQ(std::vector<double>(n * n, 18.0 * n * n), d);
}

TEST(oom_replan, in_a_graph_and_by_a_plan) {
  const context context = open_context("sim:h200?memory=4MiB&taken=3600KiB");
  std::vector<double> a(n * n, 2), b(n * n, 3), c(n * n, -1), d(n * n, -1);
  owned<sg_graph, sg_graph_release> graph;
  ASSERT_OK(sg_graph_create(context, graph.out()));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  const sg_gemm_desc ab = make_gemm(a.data(), b.data(), c.data(), n, n, n),
                     cb = make_gemm(c.data(), b.data(), d.data(), n, n, n);
  ASSERT_OK(sg_gemm_async(context, &ab, &record, nullptr));
  ASSERT_OK(sg_gemm_async(context, &cb, &record, nullptr));
  for (int i = 0; i < 3; ++i) {
    std::fill(c.begin(), c.end(), -1.0);
    std::fill(d.begin(), d.end(), -1.0);
    job run;
    ASSERT_OK(sg_graph_run_async(graph, nullptr, run.out()));
    ASSERT_OK(sg_job_wait(run, SG_FOREVER, nullptr));
    EXPECT_EQ(std::vector<double>(n * n, 6.0 * n), c);
    EXPECT_EQ(std::vector<double>(n * n, 18.0 * n * n), d);
  }
  plan made;
  ASSERT_OK(create_gemm_plan(context, &ab, nullptr, made.out()));
  std::fill(c.begin(), c.end(), -1.0);
  job run;
  ASSERT_OK(run_gemm_plan(made, &ab, nullptr, run.out()));
  ASSERT_OK(sg_job_wait(run, SG_FOREVER, nullptr));
  EXPECT_EQ(std::vector<double>(n * n, 6.0 * n), c);
}

// Split-K sums need device memory; without any, one command remains.
TEST(oom_replan, a_split_k_sum_falls_back_to_one_command) {
  constexpr std::int64_t depth = 4'000'000;
  constexpr std::uint64_t memory_bytes = 32 << 20, operands_bytes = 2 * depth + 4096;
  const context context = open_context("sim:h200?memory=32MiB");
  buffer operands, others;
  void *at = nullptr;
  ASSERT_OK(sg_buffer_create(context, operands_bytes, nullptr, operands.out()));
  ASSERT_OK(sg_buffer_data(operands, &at));
  auto *const a = static_cast<std::int8_t *>(at), *const b = a + depth;
  auto *const c = static_cast<std::int32_t *>(static_cast<void *>(b + depth));
  const std::vector<std::int8_t> threes(2 * depth, 3);
  ASSERT_OK(sg_copy(context, a, threes.data(), threes.size(), nullptr));
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = {a, 1, depth, 1, SG_DTYPE_I8, SG_LAYOUT_COLUMN_MAJOR};
  desc.b = {b, depth, 1, depth, SG_DTYPE_I8, SG_LAYOUT_COLUMN_MAJOR};
  desc.c = {c, 1, 1, 1, SG_DTYPE_I32, SG_LAYOUT_COLUMN_MAJOR};
  const auto commands_of_run = [&] {
    job run;
    EXPECT_OK(sg_gemm_async(context, &desc, nullptr, run.out()));
    EXPECT_OK(sg_job_wait(run, SG_FOREVER, nullptr));
    sg_job_statistics did = SG_JOB_STATISTICS_INIT;
    EXPECT_OK(sg_job_get_statistics(run, &did));
    EXPECT_EQ(did.commands, did.commands_run);
    EXPECT_GT(did.end_ns, did.start_ns);
    std::int32_t sum = 0;
    EXPECT_OK(sg_copy(context, &sum, c, sizeof sum, nullptr));
    EXPECT_EQ(9 * depth, sum);
    return did.commands;
  };
  // Less than a page is free.
  std::uint64_t bytes = memory_bytes - operands_bytes;
  while (sg_buffer_create(context, bytes, nullptr, others.out()) != SG_STATUS_OK) bytes -= 256;
  sg_plan_prediction planned = SG_PLAN_PREDICTION_INIT;
  plan made;
  ASSERT_OK(create_gemm_plan(context, &desc, nullptr, made.out()));
  ASSERT_OK(sg_plan_get_prediction(made, &planned));
  ASSERT_GT(planned.commands, 1) << "it should be summed in parts";
  EXPECT_EQ(1, commands_of_run());
  EXPECT_EQ(1, commands_of_run()) << "results known at that time";
  others = buffer();
  ASSERT_OK(sg_context_synchronize(context, SG_FOREVER));
  for (int i = 0; i < 200 && commands_of_run() == 1; ++i) {
  }
  EXPECT_EQ(planned.commands, commands_of_run());
}

// Two at a time: one waits for the other's memory before it is replanned for less.
TEST(oom_replan, two_at_a_time) {
  const context context = open_context("sim:h200?memory=4MiB&taken=3000KiB");  // 1096 KiB: one of them
  std::vector<double> a(n * n, 2), b(n * n, 3);
  std::vector<std::vector<double>> results(8, std::vector<double>(n * n, -1));
  std::vector<job> jobs(results.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const sg_gemm_desc desc = make_gemm(a.data(), b.data(), results[i].data(), n, n, n);
    ASSERT_OK(sg_gemm_async(context, &desc, nullptr, jobs[i].out()));
  }
  for (const job &each : jobs) {
    ASSERT_OK(sg_job_wait(each, SG_FOREVER, nullptr));
    sg_job_statistics did = SG_JOB_STATISTICS_INIT;
    ASSERT_OK(sg_job_get_statistics(each, &did));
    EXPECT_EQ(2 * matrix_bytes, did.bytes_in) << "there was room for one whole GEMM";
  }
  for (const auto &c : results) EXPECT_EQ(std::vector<double>(n * n, 6.0 * n), c);
}

TEST(oom_replan, nothing_fits) {
  const context context = open_context("sim:h200?memory=4MiB&taken=4194204");  // 100 bytes are left
  std::vector<double> a(n * n, 2), b(n * n, 3), c(n * n, -1);
  const sg_gemm_desc desc = make_gemm(a.data(), b.data(), c.data(), n, n, n);
  const std::string wanted = std::to_string(plan_of(context, exact_case()).device_bytes) + " bytes";
  for (int i = 0; i < 3; ++i) {
    job refused;
    ASSERT_OK(sg_gemm_async(context, &desc, nullptr, refused.out()));
    EXPECT_STATUS(SG_STATUS_OUT_OF_MEMORY, sg_job_wait(refused, SG_FOREVER, nullptr));
    char text[500] = "";
    EXPECT_OK(sg_job_message(refused, text, sizeof text, nullptr));
    EXPECT_NE(nullptr, std::strstr(text, wanted.c_str())) << text;
    EXPECT_NE(nullptr, std::strstr(text, "100 are free")) << text;
  }
  EXPECT_EQ(std::vector<double>(n * n, -1.0), c) << "C was written to";
  buffer none;
  EXPECT_STATUS(SG_STATUS_OUT_OF_MEMORY, sg_buffer_create(context, 101, nullptr, none.out()));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "101 bytes")) << sg_last_error_message();
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "100 are free")) << sg_last_error_message();
  expect_free(context, 100);
}

// Forced tiles that do not fit are an error.
TEST(oom_replan, forced_tiles_are_kept) {
  const context context = open_context("sim:h200?memory=4MiB&taken=3600KiB");
  gemm_case g = exact_case();
  g.options.tile_m = g.options.tile_n = g.options.tile_k = n;
  EXPECT_NE(std::string::npos, run_gemm_case(context, g).find("SG_STATUS_OUT_OF_MEMORY"));
  g.options.tile_m = g.options.tile_n = 48;
  EXPECT_EQ("", run_gemm_case(context, g));
}

}  // namespace
}  // namespace sg_test
