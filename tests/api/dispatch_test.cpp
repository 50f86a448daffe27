// SPDX-License-Identifier: Apache-2.0
// How queued submissions are dispatched: small GEMMs in batches unless coalescing is off, and no more jobs than the
// limit.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "support/harness.hpp"

namespace sg_test {
namespace {

context open_with(std::uint32_t flags, std::uint64_t job_limit = 0, sg_when_full when_full = SG_WHEN_FULL_BLOCK) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = "cpu";
  options.compute_lanes = 1;
  options.flags = flags;
  options.job_limit = job_limit;
  options.when_full = when_full;
  context result;
  EXPECT_OK(sg_context_create(&options, result.out()));
  return result;
}

// The largest batch of many GEMMs that queued behind a blocked worker; every result is checked.
std::int32_t max_batch_size(sg_context *in) {
  constexpr std::size_t count = 60;
  std::vector<double> a(count), b(count, 3), c(count, -1);
  std::vector<job> jobs(count);
  {
    gated_job gated(in);
    if (!gated || !gated.running()) return -1;
    for (std::size_t i = 0; i < count; ++i) {
      a[i] = double(i);
      const sg_gemm_desc desc = make_gemm(&a[i], &b[i], &c[i], 1, 1, 1);
      EXPECT_OK(sg_gemm_async(in, &desc, nullptr, jobs[i].out()));
    }
    gated.open();
  }
  std::int32_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_OK(sg_job_wait(jobs[i], SG_FOREVER, nullptr));
    EXPECT_EQ(3 * double(i), c[i]);
    sg_job_statistics seen = SG_JOB_STATISTICS_INIT;
    EXPECT_OK(sg_job_get_statistics(jobs[i], &seen));
    EXPECT_GE(seen.batch_size, 1);
    most = std::max(most, seen.batch_size);
  }
  return most;
}

TEST(dispatch, queued_gemms_form_a_batch) {
  const context in = open_with(0);
  const std::int32_t most = max_batch_size(in);
  if (most < 0) GTEST_SKIP() << "userfaultfd is not available here";
  EXPECT_GT(most, 10);
}

// Job records are reused: membership in a group must not remain in the record of a later job without work.
TEST(dispatch, a_reused_job_record_keeps_no_old_state) {
  const context in = open_with(0);
  if (max_batch_size(in) < 0) GTEST_SKIP() << "userfaultfd is not available here";
  double unused = 0;
  std::vector<job> jobs(100);
  for (job &each : jobs) {
    const sg_gemm_desc nothing = make_gemm(&unused, &unused, &unused, 0, 1, 1);
    ASSERT_OK(sg_gemm_async(in, &nothing, nullptr, each.out()));
  }
  for (const job &each : jobs) {
    ASSERT_OK(sg_job_wait(each, SG_FOREVER, nullptr));
    sg_job_statistics seen = SG_JOB_STATISTICS_INIT;
    ASSERT_OK(sg_job_get_statistics(each, &seen));
    EXPECT_EQ(1, seen.batch_size);
    EXPECT_EQ(0, seen.commands_run);
    EXPECT_EQ(0, seen.start_ns);
    EXPECT_EQ(0, seen.busy_seconds);
    EXPECT_STREQ("nothing to do", seen.strategy);
  }
}

// Batches on a device: other GEMMs queue while one GEMM takes a simulated device some milliseconds of real time.
// Retried on machines too slow for any to queue.
TEST(dispatch, gemms_queued_for_a_device_form_a_batch) {
  constexpr std::size_t count = 60, n = 200;
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = "sim:h200";
  options.commands_in_flight = 1;
  context in;
  ASSERT_OK(sg_context_create(&options, in.out()));
  std::vector<double> host(3 * n * n + 3 * count, 2.0);
  const std::size_t bytes = host.size() * sizeof(double);
  buffer memory;
  void *data = nullptr;
  ASSERT_OK(sg_buffer_create(in, bytes, nullptr, memory.out()));
  ASSERT_OK(sg_buffer_data(memory, &data));
  auto *a = static_cast<double *>(data), *b = a + n * n, *c = b + n * n, *results = c + n * n, *x = results + count,
       *y = x + count;
  // With their own scalars they are single GEMMs in one batch, with equal scalars one batched GEMM.
  std::int32_t most_unbatched = 0, most_batched = 0;
  for (int attempt = 0; attempt < 100 && std::min(most_unbatched, most_batched) < 10; ++attempt) {
    const bool unbatched = most_unbatched < 10;
    std::int32_t &most = unbatched ? most_unbatched : most_batched;
    const auto alpha = [&](std::size_t i) { return unbatched ? double(i) : 3.0; };
    std::fill(host.begin(), host.end(), 2.0);
    for (std::size_t i = 0; i < 2 * count; ++i) host[3 * n * n + count + i] = double(1 + i % 7);
    ASSERT_OK(sg_copy_async(in, data, host.data(), bytes, nullptr, nullptr));
    ASSERT_OK(sg_context_synchronize(in, SG_FOREVER));
    std::vector<job> jobs(count + 1);
    sg_gemm_desc desc = make_gemm(a, b, c, n, n, n);
    ASSERT_OK(sg_gemm_async(in, &desc, nullptr, jobs[count].out()));
    for (std::size_t i = 0; i < count; ++i) {
      desc = make_gemm(x + i, y + i, results + i, 1, 1, 1);
      desc.alpha.re = alpha(i);
      ASSERT_OK(sg_gemm_async(in, &desc, nullptr, jobs[i].out()));
    }
    for (const job &each : jobs) {
      ASSERT_OK(sg_job_wait(each, SG_FOREVER, nullptr));
      sg_job_statistics seen = SG_JOB_STATISTICS_INIT;
      ASSERT_OK(sg_job_get_statistics(each, &seen));
      most = std::max(most, seen.batch_size);
    }
    job back;
    ASSERT_OK(sg_copy_async(in, host.data(), data, bytes, nullptr, back.out()));
    ASSERT_OK(sg_job_wait(back, SG_FOREVER, nullptr));
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(double(1 + i % 7) * double(1 + (count + i) % 7) * alpha(i), host[3 * n * n + i]);
    ASSERT_EQ(4.0 * n, host[2 * n * n]);
  }
  EXPECT_GE(most_unbatched, 10);
  EXPECT_GE(most_batched, 10);
}

// GEMMs of great depth, which one call would not spread over idle units; one in `in_turn` of all GEMMs.
void expect_deep_ones_apart(std::int32_t lanes, std::size_t count, std::size_t in_turn) {
  constexpr std::size_t n = 200, depth = 16384;
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = "sim:h200";
  options.compute_lanes = lanes;
  options.commands_in_flight = 1;
  context in;
  ASSERT_OK(sg_context_create(&options, in.out()));
  std::vector<double> host(3 * n * n + count, 1.0);
  const std::size_t bytes = host.size() * sizeof(double);
  buffer memory;
  void *data = nullptr;
  ASSERT_OK(sg_buffer_create(in, bytes, nullptr, memory.out()));
  ASSERT_OK(sg_buffer_data(memory, &data));
  auto *a = static_cast<double *>(data), *b = a + n * n, *c = b + n * n, *results = c + n * n;
  const auto is_deep = [&](std::size_t i) { return i % in_turn == in_turn / 2; };
  std::int32_t most = 0;
  for (int attempt = 0; attempt < 100 && most < 10; ++attempt) {
    ASSERT_OK(sg_copy_async(in, data, host.data(), bytes, nullptr, nullptr));
    ASSERT_OK(sg_context_synchronize(in, SG_FOREVER));
    std::vector<job> jobs(count);
    sg_gemm_desc desc = make_gemm(a, b, c, n, n, n);  // takes the simulated device some milliseconds of real time
    ASSERT_OK(sg_gemm_async(in, &desc, nullptr, nullptr));
    for (std::size_t i = 0; i < count; ++i) {
      desc = make_gemm(a, b, results + i, 1, 1, is_deep(i) ? depth : 2);
      ASSERT_OK(sg_gemm_async(in, &desc, nullptr, jobs[i].out()));
    }
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_OK(sg_job_wait(jobs[i], SG_FOREVER, nullptr));
      sg_job_statistics seen = SG_JOB_STATISTICS_INIT;
      ASSERT_OK(sg_job_get_statistics(jobs[i], &seen));
      if (is_deep(i))
        ASSERT_EQ(1, seen.batch_size) << i;
      else
        most = std::max(most, seen.batch_size);
    }
    std::vector<double> sums(count);
    ASSERT_OK(sg_copy(in, sums.data(), results, sums.size() * sizeof(double), nullptr));
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(is_deep(i) ? double(depth) : 2.0, sums[i]) << i;
  }
  EXPECT_GE(most, 10);
}
TEST(dispatch, few_deep_gemms_are_not_batched) { expect_deep_ones_apart(0, 64, 16); }
TEST(dispatch, deep_gemms_wait_for_room_in_a_lane) { expect_deep_ones_apart(1, 75, 3); }

TEST(dispatch, coalescing_can_be_switched_off) {
  const context in = open_with(SG_CONTEXT_NO_COALESCING);
  const std::int32_t most = max_batch_size(in);
  if (most < 0) GTEST_SKIP() << "userfaultfd is not available here";
  EXPECT_EQ(1, most);
}

// One thread submits a flood, then another one submits a few, while the only worker is blocked: the few get their fair
// share and do not wait behind the flood.
void expect_turns(std::uint32_t flags) {
  constexpr std::size_t flood = 2000, few = 5;
  const context in = open_with(flags);
  double one = 1;
  std::vector<double> c(flood + few);
  std::vector<job> jobs(flood + few);
  gated_job gated(in);
  SKIP_WITHOUT_GATE(gated);
  ASSERT_TRUE(gated.running());
  const auto submit = [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      const sg_gemm_desc desc = make_gemm(&one, &one, &c[i], 1, 1, 1);
      EXPECT_OK(sg_gemm_async(in, &desc, nullptr, jobs[i].out()));
    }
  };
  submit(0, flood);
  std::thread(submit, flood, few).join();
  gated.open();
  ASSERT_OK(sg_context_synchronize(in, SG_FOREVER));
  const auto end_of = [&](std::size_t i) {
    sg_job_statistics seen = SG_JOB_STATISTICS_INIT;
    EXPECT_OK(sg_job_get_statistics(jobs[i], &seen));
    return seen.end_ns;
  };
  std::int64_t last_of_few = 0;
  for (std::size_t i = flood; i < flood + few; ++i) last_of_few = std::max(last_of_few, end_of(i));
  std::size_t before = 0;
  for (std::size_t i = 0; i < flood; ++i) before += end_of(i) < last_of_few;
  EXPECT_LT(before, flood / 4) << "of the flood completed before the last of the few";
}

// Fair share holds from whichever thread the few come.
void expect_turns_of_many_threads(std::uint32_t flags) {
  for (int thread = 0; thread < 20; ++thread) {
    SCOPED_TRACE(thread);
    expect_turns(flags);
    if (testing::Test::IsSkipped() || testing::Test::HasFailure()) return;
  }
}

TEST(dispatch, submitters_get_a_fair_share_of_single_jobs) { expect_turns_of_many_threads(SG_CONTEXT_NO_COALESCING); }
TEST(dispatch, submitters_get_a_fair_share_of_batches) { expect_turns_of_many_threads(0); }

TEST(dispatch, at_its_job_limit_a_context_refuses) {
  const context in = open_with(0, 3, SG_WHEN_FULL_REFUSE);
  double one = 1, c[3] = {};
  gated_job gated(in);
  SKIP_WITHOUT_GATE(gated);
  job jobs[2], refused;
  for (int i = 0; i < 2; ++i) {
    const sg_gemm_desc desc = make_gemm(&one, &one, &c[i], 1, 1, 1);
    ASSERT_OK(sg_gemm_async(in, &desc, nullptr, jobs[i].out()));
  }
  const sg_gemm_desc desc = make_gemm(&one, &one, &c[2], 1, 1, 1);
  EXPECT_STATUS(SG_STATUS_BUSY, sg_gemm_async(in, &desc, nullptr, refused.out()));
  EXPECT_NE(nullptr, strstr(sg_last_error_message(), "3 jobs")) << sg_last_error_message();
  gated.open();
  ASSERT_OK(sg_context_synchronize(in, SG_FOREVER));
  ASSERT_OK(sg_gemm(in, &desc, nullptr)) << "there is room again";
  EXPECT_EQ(1, c[2]);
}

TEST(dispatch, at_its_job_limit_a_context_blocks_submitters) {
  const context in = open_with(0, 1);
  double one = 1, c = 0;
  gated_job gated(in);
  SKIP_WITHOUT_GATE(gated);
  std::atomic<bool> submitted{false};
  std::thread other([&] {
    const sg_gemm_desc desc = make_gemm(&one, &one, &c, 1, 1, 1);
    job mine;
    EXPECT_OK(sg_gemm_async(in, &desc, nullptr, mine.out()));  // returns at once except at the job limit
    submitted = true;
    EXPECT_OK(sg_job_wait(mine, SG_FOREVER, nullptr));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(submitted);
  gated.open();
  other.join();
  EXPECT_EQ(1, c);
}

TEST(dispatch, wrong_options_are_named) {
  context none;
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = "cpu";
  options.commands_in_flight = -1;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_context_create(&options, none.out()));
  EXPECT_NE(nullptr, strstr(sg_last_error_message(), "options->commands_in_flight"));
  options.commands_in_flight = 0;
  options.when_full = static_cast<sg_when_full>(7);
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_context_create(&options, none.out()));
  EXPECT_NE(nullptr, strstr(sg_last_error_message(), "options->when_full"));
  options.when_full = SG_WHEN_FULL_BLOCK;
  options.job_limit = UINT64_MAX;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_context_create(&options, none.out()));
  EXPECT_NE(nullptr, strstr(sg_last_error_message(), "options->job_limit"));
}

}  // namespace
}  // namespace sg_test
