// SPDX-License-Identifier: Apache-2.0
// Deadlines: a job that has not started by its deadline is dropped, a running job is stopped; cancellation of a long
// running job.
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "support/harness.hpp"

namespace sg_test {
namespace {

class deadlines : public on_each_device {
 protected:
  sg_submit within(std::int64_t ns) {
    sg_submit options = SG_SUBMIT_INIT;
    options.timeout_ns = ns;
    return options;
  }
  void sleep_for_ms(int count) { std::this_thread::sleep_for(std::chrono::milliseconds(count)); }
  double a_ = 3, b_ = 7, c_ = -1;
};

TEST_P(deadlines, far_ahead_change_nothing) {
  const sg_submit options = within(60'000 * ms);
  const sg_gemm_desc d = make_gemm(&a_, &b_, &c_, 1, 1, 1);
  for (int i = 0; i < 20; ++i) {
    c_ = -1;
    ASSERT_OK(sg_gemm(context_, &d, &options));
    ASSERT_EQ(21, c_);
  }
  const sg_submit longest = within(INT64_MAX);
  ASSERT_OK(sg_gemm(context_, &d, &longest));
}

TEST_P(deadlines, drop_jobs_that_have_not_started) {
  stream in;
  ASSERT_OK(sg_stream_create(context_, nullptr, in.out()));
  sg_submit first = SG_SUBMIT_INIT;
  first.stream = in;
  gated_job gated(context_, &first);
  SKIP_WITHOUT_GATE(gated);
  sg_submit options = within(20 * ms);
  options.stream = in;
  job late, after;
  const sg_gemm_desc d = make_gemm(&a_, &b_, &c_, 1, 1, 1);
  ASSERT_OK(sg_gemm_async(context_, &d, &options, late.out()));
  double unread = 5;
  const sg_gemm_desc reader = make_gemm(&c_, &b_, &unread, 1, 1, 1);
  ASSERT_OK(sg_gemm_async(context_, &reader, nullptr, after.out()));
  sleep_for_ms(60);
  gated.open();
  EXPECT_STATUS(SG_STATUS_DEADLINE_EXCEEDED, sg_job_wait(late, SG_FOREVER, nullptr));
  char text[240];
  EXPECT_OK(sg_job_message(late, text, sizeof text, nullptr));
  EXPECT_NE(nullptr, std::strstr(text, "deadline")) << text;
  EXPECT_EQ(-1, c_);
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, sg_job_wait(after, SG_FOREVER, nullptr));
  EXPECT_EQ(5, unread);
  EXPECT_OK(sg_job_wait(gated.get(), SG_FOREVER, nullptr));
}

TEST_P(deadlines, behind_more_jobs_than_run_at_once) {
  std::vector<std::unique_ptr<gated_job>> held;
  for (int i = 0; i < 64; ++i) {  // more than run at once
    held.push_back(std::make_unique<gated_job>(context_));
    SKIP_WITHOUT_GATE(*held.back());
  }
  const sg_submit options = within(20 * ms);
  const sg_gemm_desc d = make_gemm(&a_, &b_, &c_, 1, 1, 1);
  job late;
  ASSERT_OK(sg_gemm_async(context_, &d, &options, late.out()));
  sleep_for_ms(40);
  for (const auto &each : held) each->open();
  const sg_status status = sg_job_wait(late, SG_FOREVER, nullptr);
  EXPECT_TRUE(status == SG_STATUS_DEADLINE_EXCEEDED || (status == SG_STATUS_OK && c_ == 21)) << sg_status_name(status);
}

TEST_P(deadlines, of_copies_and_of_graphs) {
  stream in;
  ASSERT_OK(sg_stream_create(context_, nullptr, in.out()));
  sg_submit first = SG_SUBMIT_INIT;
  first.stream = in;
  gated_job gated(context_, &first);
  SKIP_WITHOUT_GATE(gated);
  sg_submit options = within(10 * ms);
  options.stream = in;
  char from[4] = "new", to[4] = "old";
  job copied, ran;
  ASSERT_OK(sg_copy_async(context_, to, from, sizeof to, &options, copied.out()));
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  const sg_gemm_desc d = make_gemm(&a_, &b_, &c_, 1, 1, 1);
  ASSERT_OK(sg_gemm_async(context_, &d, &record, nullptr));
  record.timeout_ns = ms;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm_async(context_, &d, &record, nullptr));
  ASSERT_OK(sg_graph_run_async(graph, &options, ran.out()));
  sleep_for_ms(40);
  gated.open();
  EXPECT_STATUS(SG_STATUS_DEADLINE_EXCEEDED, sg_job_wait(copied, SG_FOREVER, nullptr));
  EXPECT_STATUS(SG_STATUS_DEADLINE_EXCEEDED, sg_job_wait(ran, SG_FOREVER, nullptr));
  EXPECT_STREQ("old", to);
  EXPECT_EQ(-1, c_);
  EXPECT_OK(sg_graph_release(graph));
}

TEST_P(deadlines, negative_values_are_refused) {
  const sg_submit options = within(-1);
  const sg_gemm_desc d = make_gemm(&a_, &b_, &c_, 1, 1, 1);
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm_async(context_, &d, &options, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "submit->timeout_ns is -1"));
}

ON_EACH_DEVICE(deadlines);

// A blocked GEMM keeps the only lane busy, so only the deadlines wake the engine.
class deadlines_in_one_lane : public testing::Test {
 protected:
  void SetUp() override {
    sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    options.compute_lanes = 1;
    ASSERT_OK(sg_context_create(&options, context_.out()));
  }
  void submit(double *to, std::int64_t deadline_ns, job &made) {
    sg_submit options = SG_SUBMIT_INIT;
    options.timeout_ns = deadline_ns;
    const sg_gemm_desc d = make_gemm(&a_, &b_, to, 1, 1, 1);
    ASSERT_OK(sg_gemm_async(context_, &d, &options, made.out()));
  }
  context context_;
  double a_ = 3, b_ = 7, c_ = -1, d_ = -1;
};

TEST_F(deadlines_in_one_lane, drop_queued_jobs) {
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  ASSERT_TRUE(gated.running());
  job in_lane, outside;
  submit(&c_, 20 * ms, in_lane);
  submit(&d_, 40 * ms, outside);
  for (int i = 0; i < 30'000 && sg_job_query(outside, nullptr) == SG_STATUS_NOT_READY; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_STATUS(SG_STATUS_DEADLINE_EXCEEDED, sg_job_query(outside, nullptr));
  gated.open();
  EXPECT_STATUS(SG_STATUS_DEADLINE_EXCEEDED, sg_job_wait(in_lane, SG_FOREVER, nullptr));
  EXPECT_OK(sg_job_wait(gated.get(), SG_FOREVER, nullptr));
  EXPECT_EQ(-1, c_);
  EXPECT_EQ(-1, d_);
}

TEST_F(deadlines_in_one_lane, fire_while_a_callback_waits) {
  struct waiting {
    job late;
    std::atomic<sg_status> status{SG_STATUS_NOT_READY};
  } what;
  job before, in_lane;
  submit(&c_, 0, before);
  ASSERT_OK(sg_job_wait(before, SG_FOREVER, nullptr));
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  ASSERT_TRUE(gated.running());
  submit(&c_, 0, in_lane);
  submit(&d_, 300 * ms, what.late);
  ASSERT_OK(sg_job_on_complete(
      before,
      [](sg_job *, sg_status, void *user) {
        auto &own = *static_cast<waiting *>(user);
        own.status = sg_job_wait(own.late, 30'000 * ms, nullptr);
      },
      &what));
  while (what.status == SG_STATUS_NOT_READY) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_STATUS(SG_STATUS_DEADLINE_EXCEEDED, what.status);
  gated.open();
  EXPECT_OK(sg_job_wait(in_lane, SG_FOREVER, nullptr));
  EXPECT_EQ(-1, d_);
}

// A second's work on two cores, more elsewhere: it completes as stopped only if it was stopped while running.
class long_gemms : public testing::TestWithParam<sg_dtype> {
 protected:
  void SetUp() override {
    const auto size = static_cast<std::size_t>(n * n * sg_dtype_size(GetParam()));
    const std::size_t wide = GetParam() == SG_DTYPE_I8 ? 4 * size : size;
    if (!memory_.a.empty()) return;
    memory_.a.resize(size), memory_.b.resize(size), memory_.c.resize(wide);
    sg_matrix square{memory_.a.data(), n, n, 0, GetParam(), SG_LAYOUT_COLUMN_MAJOR};
    desc_.a = desc_.b = desc_.c = square;
    desc_.b.data = memory_.b.data();
    desc_.c.data = memory_.c.data();
    if (GetParam() == SG_DTYPE_I8) desc_.c.dtype = SG_DTYPE_I32;
  }
  static constexpr std::int64_t n = 4096;
  context context_ = open_context("cpu");
  struct {
    std::vector<char> a, b, c;
  } memory_;
  sg_gemm_desc desc_ = SG_GEMM_DESC_INIT;
};

TEST_P(long_gemms, stop_when_cancelled) {
  job made;
  ASSERT_OK(sg_gemm_async(context_, &desc_, nullptr, made.out()));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  ASSERT_OK(sg_job_cancel(made));
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(made, SG_FOREVER, nullptr));
}

TEST_P(long_gemms, stop_at_their_deadline) {
  sg_submit options = SG_SUBMIT_INIT;
  options.timeout_ns = 30 * ms;
  EXPECT_STATUS(SG_STATUS_DEADLINE_EXCEEDED, sg_gemm(context_, &desc_, &options));
}

INSTANTIATE_TEST_SUITE_P(types, long_gemms, testing::Values(SG_DTYPE_F32, SG_DTYPE_F64, SG_DTYPE_C64, SG_DTYPE_F16),
                         [](const auto &info) { return sg_dtype_name(info.param); });

}  // namespace
}  // namespace sg_test
