// SPDX-License-Identifier: Apache-2.0
// Blocking calls, whose short products the calling thread may compute: they keep every rule of a job.
#include <cfenv>
#include <cmath>
#include <limits>
#include <thread>

#include "support/harness.hpp"

namespace sg_test {
namespace {

class blocking : public on_each_device {
 protected:
  static constexpr int n = 8;
  std::vector<double> a_ = std::vector<double>(n * n, 1), b_ = std::vector<double>(n * n, 2), c_ = std::vector<double>(n * n, -1);
  sg_gemm_desc desc() { return product(a_.data(), b_.data(), c_.data(), n, n, n); }
  // The second of two equal calls is the one that may be computed here.
  void multiply_twice(const sg_gemm_desc &d) {
    for (int i = 0; i < 2; ++i) ASSERT_OK(sg_gemm(context_, &d, nullptr));
  }
};

TEST_P(blocking, many_in_a_row) {
  const sg_gemm_desc d = desc();
  for (int i = 0; i < 1000; ++i) {
    c_.assign(c_.size(), std::numeric_limits<double>::quiet_NaN());
    ASSERT_OK(sg_gemm(context_, &d, nullptr));
    for (const double x : c_) ASSERT_EQ(2.0 * n, x);
  }
}

// Each adds to what the one before has left, whichever thread computes it.
TEST_P(blocking, are_ordered_with_jobs_by_their_memory) {
  sg_gemm_desc d = desc();
  d.beta.re = 1;
  c_.assign(c_.size(), 0);
  for (int i = 0; i < 200; ++i) {
    ASSERT_OK(sg_gemm_async(context_, &d, nullptr, nullptr));
    ASSERT_OK(sg_gemm(context_, &d, nullptr));
  }
  for (const double x : c_) ASSERT_EQ(400 * 2.0 * n, x);
}

TEST_P(blocking, wait_for_a_job_that_they_come_after) {
  const gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  double doubled = 0, two = 2;
  const sg_gemm_desc d = product(gated.result(), &two, &doubled, 1, 1, 1);
  std::thread opens([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const_cast<gated_job &>(gated).open();
  });
  EXPECT_OK(sg_gemm(context_, &d, nullptr));
  EXPECT_EQ(2 * gated_job::expected, doubled);
  opens.join();
}

// Two threads that add to one result: each product happens as a whole.
TEST_P(blocking, of_several_threads_are_jobs_of_their_own) {
  c_.assign(c_.size(), 0);
  sg_gemm_desc d = desc();
  d.beta.re = 1;
  constexpr int threads = 4, times = 300;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, own = d] {
      for (int i = 0; i < times; ++i) EXPECT_OK(sg_gemm(context_, &own, nullptr));
    });
  for (std::thread &each : all) each.join();
  for (const double x : c_) ASSERT_EQ(threads * times * 2.0 * n, x);
}

TEST_P(blocking, hand_out_a_job_that_has_run) {
  const sg_gemm_desc d = desc();
  sg_submit options = SG_SUBMIT_INIT;
  options.flags = SG_SUBMIT_WILL_WAIT;
  for (int i = 0; i < 5; ++i) {
    job made;
    ASSERT_OK(sg_gemm_async(context_, &d, &options, made.out()));
    ASSERT_OK(sg_job_wait(made, SG_FOREVER));
    sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
    ASSERT_OK(sg_job_get_statistics(made, &statistics));
    EXPECT_EQ(statistics.commands, statistics.commands_run);
    EXPECT_EQ(2.0 * n * n * n, statistics.flops);
    EXPECT_GT(statistics.end_ns, 0);
    EXPECT_GE(statistics.end_ns, statistics.start_ns);
  }
}

TEST_P(blocking, post_completions_and_call_back) {
  queue posted;
  ASSERT_OK(sg_queue_create(context_, posted.out()));
  const sg_gemm_desc d = desc();
  sg_submit options = SG_SUBMIT_INIT;
  options.queue = posted;
  for (std::uint64_t tag = 1; tag <= 3; ++tag) {
    options.tag = tag;
    ASSERT_OK(sg_gemm(context_, &d, &options));
    sg_completion completion;
    std::int32_t count = 0;
    ASSERT_OK(sg_queue_next_batch(posted, &completion, 1, SG_FOREVER, &count));
    EXPECT_EQ(tag, completion.tag);
  }
}

// The application's rounding is not the product's, and stays what it is.
TEST_P(blocking, leave_the_threads_arithmetic_alone) {
  // Their sum is 1 in every rounding but upwards.
  std::vector<double> x{1, std::numeric_limits<double>::epsilon() / 4}, y{1, 1};
  double sum = 0;
  const sg_gemm_desc d = product(x.data(), y.data(), &sum, 1, 1, 2);
  multiply_twice(d);
  const double nearest = sum;
  ASSERT_EQ(0, std::fesetround(FE_UPWARD));
  multiply_twice(d);
  const int after = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(FE_UPWARD, after);
  EXPECT_EQ(nearest, sum);
}

TEST_P(blocking, waits_run_what_no_worker_has_begun) {
  for (int i = 0; i < 200; ++i) {
    std::vector<double> results(32, -1);
    std::vector<job> jobs(results.size());
    const double three = 3, four = 4;
    for (std::size_t r = 0; r < results.size(); ++r) {
      const sg_gemm_desc d = product(&three, &four, &results[r], 1, 1, 1);
      ASSERT_OK(sg_gemm_async(context_, &d, nullptr, jobs[r].out()));
    }
    for (std::size_t r = results.size(); r-- > 0;) {
      ASSERT_OK(sg_job_wait(jobs[r], SG_FOREVER));
      ASSERT_EQ(12, results[r]);
    }
  }
}

ON_EACH_DEVICE(blocking);

}  // namespace
}  // namespace sg_test
