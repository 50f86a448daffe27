// SPDX-License-Identifier: Apache-2.0
// Jobs: wait, poll, time limits, cancellation, statistics, messages, waiting for many, `after`.
#include <chrono>
#include <cstring>
#include <thread>

#include "support/harness.hpp"

namespace sg_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// One lane, so that a gated job blocks all others.
class jobs : public testing::TestWithParam<const char *> {
 protected:
  void SetUp() override { context_ = open_context(GetParam(), 1); }
  job submit(double *c, const sg_submit *options = nullptr) {
    const sg_gemm_desc desc = make_gemm(&a_, &b_, c, 1, 1, 1);
    job result;
    EXPECT_OK(sg_gemm_async(context_, &desc, options, result.out()));
    return result;
  }
  context context_;
  double a_ = 2, b_ = 5;
};

TEST_P(jobs, wait_poll_and_time_limits) {
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_job_query(gated.get(), nullptr));
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_job_wait(gated.get(), 0, nullptr));
  const auto start = steady_clock::now();
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_job_wait(gated.get(), 30 * ms, nullptr));
  const auto waited = steady_clock::now() - start;
  EXPECT_GE(waited, milliseconds(30));
  EXPECT_LT(waited, std::chrono::minutes(2));
  ASSERT_TRUE(gated.running());
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_job_query(gated.get(), nullptr));
  gated.open();
  EXPECT_OK(sg_job_wait(gated.get(), SG_FOREVER, nullptr));
  EXPECT_OK(sg_job_query(gated.get(), nullptr));
  EXPECT_OK(sg_job_wait(gated.get(), 0, nullptr));
  EXPECT_EQ(gated_job::expected, *gated.result());
}

TEST_P(jobs, a_wait_returns_before_its_time_limit) {
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  std::thread opener([&] {
    std::this_thread::sleep_for(milliseconds(20));
    gated.open();
  });
  EXPECT_OK(sg_job_wait(gated.get(), 600000 * ms, nullptr));
  opener.join();
}

TEST_P(jobs, many_threads_wait_for_one_job) {
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  std::vector<std::thread> waiters;
  for (int i = 0; i < 8; ++i) waiters.emplace_back([&] { EXPECT_OK(sg_job_wait(gated.get(), SG_FOREVER, nullptr)); });
  std::this_thread::sleep_for(milliseconds(5));
  gated.open();
  for (std::thread &waiter : waiters) waiter.join();
}

TEST_P(jobs, a_queued_job_can_be_cancelled) {
  double c = -1;
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  ASSERT_TRUE(gated.running());
  sg_submit options = SG_SUBMIT_INIT;
  sg_job *const first = gated.get();
  options.after = &first;
  options.after_count = 1;
  job waiting = submit(&c, &options);
  EXPECT_OK(sg_job_cancel(waiting));
  gated.open();
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(waiting, SG_FOREVER, nullptr));
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_query(waiting, nullptr));
  EXPECT_OK(sg_job_wait(first, SG_FOREVER, nullptr));
  EXPECT_EQ(-1, c) << "a cancelled job that had not started must not write";
  sg_job_statistics stats = SG_JOB_STATISTICS_INIT;
  EXPECT_OK(sg_job_get_statistics(waiting, &stats));
  EXPECT_EQ(0, stats.commands_run);
  EXPECT_EQ(0, stats.start_ns);
  char text[200] = "";
  EXPECT_OK(sg_job_message(waiting, text, sizeof text, nullptr));
  EXPECT_NE(std::string::npos, std::string(text).find("cancel")) << text;
}

TEST_P(jobs, dependents_of_a_cancelled_job_do_not_run) {
  double c = -1, d = -1, e = -1, f = -1;
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  sg_job *const first = gated.get();
  sg_submit options = SG_SUBMIT_INIT;
  options.after = &first;
  options.after_count = 1;
  job cancelled = submit(&c, &options);
  sg_job *const second = cancelled.get();
  sg_submit named = SG_SUBMIT_INIT;
  named.after = &second;
  named.after_count = 1;
  job by_name = submit(&d, &named);
  const sg_gemm_desc reader = make_gemm(&c, &b_, &e, 1, 1, 1);
  job by_data, independent = submit(&f);
  ASSERT_OK(sg_gemm_async(context_, &reader, nullptr, by_data.out()));
  EXPECT_OK(sg_job_cancel(cancelled));
  gated.open();
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(cancelled, SG_FOREVER, nullptr));
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, sg_job_wait(by_name, SG_FOREVER, nullptr));
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, sg_job_wait(by_data, SG_FOREVER, nullptr));
  EXPECT_OK(sg_job_wait(independent, SG_FOREVER, nullptr));
  EXPECT_EQ(-1, d);
  EXPECT_EQ(-1, e);
  EXPECT_EQ(10, f);
}

// The order of a stream alone is no dependency: a later job of the stream that uses other data runs.
TEST_P(jobs, the_stream_goes_on_after_a_cancelled_job) {
  double c = -1, d = -1;
  stream order;
  ASSERT_OK(sg_stream_create(context_, nullptr, order.out()));
  sg_submit options = SG_SUBMIT_INIT;
  options.stream = order;
  gated_job gated(context_, &options);
  SKIP_WITHOUT_GATE(gated);
  job cancelled = submit(&c, &options), later = submit(&d, &options);
  EXPECT_OK(sg_job_cancel(cancelled));
  gated.open();
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(cancelled, SG_FOREVER, nullptr));
  EXPECT_OK(sg_job_wait(later, SG_FOREVER, nullptr));
  EXPECT_EQ(-1, c);
  EXPECT_EQ(10, d);
}

TEST_P(jobs, too_late_to_cancel) {
  double c = 0;
  job completed = submit(&c);
  ASSERT_OK(sg_job_wait(completed, SG_FOREVER, nullptr));
  EXPECT_STATUS(SG_STATUS_BUSY, sg_job_cancel(completed));
  EXPECT_OK(sg_job_query(completed, nullptr));
}

// A running command completes first; then the job is either cancelled or complete, and it completes in any case.
TEST_P(jobs, cancelling_a_running_job) {
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  ASSERT_TRUE(gated.running());
  EXPECT_OK(sg_job_cancel(gated.get()));
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_job_wait(gated.get(), 5 * ms, nullptr)) << "a running command was abandoned";
  gated.open();
  const sg_status seen = sg_job_wait(gated.get(), SG_FOREVER, nullptr);
  EXPECT_TRUE(seen == SG_STATUS_OK || seen == SG_STATUS_CANCELLED) << sg_status_name(seen);
  EXPECT_EQ(seen == SG_STATUS_OK ? gated_job::expected : *gated.result(), *gated.result());
  double c = 0;
  job next = submit(&c);
  EXPECT_OK(sg_job_wait(next, SG_FOREVER, nullptr));
  EXPECT_EQ(10, c);
}

TEST_P(jobs, statistics) {
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  sg_job_statistics stats = SG_JOB_STATISTICS_INIT;
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_job_get_statistics(gated.get(), &stats));
  char text[8] = "x";
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_job_message(gated.get(), text, sizeof text, nullptr));
  gated.open();
  ASSERT_OK(sg_job_wait(gated.get(), SG_FOREVER, nullptr));
  ASSERT_OK(sg_job_get_statistics(gated.get(), &stats));
  EXPECT_EQ(2.0, stats.flops);
  EXPECT_GE(stats.commands, 1);
  EXPECT_EQ(stats.commands, stats.commands_run);
  EXPECT_GT(stats.end_ns, stats.start_ns);
  EXPECT_GT(stats.busy_seconds, 0);
  EXPECT_GT(stats.predicted_seconds, 0);
  EXPECT_GT(stats.bound_seconds, 0);
  EXPECT_STRNE("", stats.strategy);
  EXPECT_OK(sg_job_message(gated.get(), text, sizeof text, nullptr));
  std::uint64_t needed = 0, of_label = 0;
  EXPECT_OK(sg_job_message(gated.get(), nullptr, 0, &needed));
  EXPECT_EQ(std::strlen(text) + 1, needed);
  EXPECT_OK(sg_job_label(gated.get(), nullptr, 0, &of_label));
  EXPECT_EQ(1U, of_label) << "it has none";
  EXPECT_STREQ("", text);
}

TEST_P(jobs, wait_all) {
  double c[5] = {};
  std::vector<job> all;
  std::vector<sg_job *> handles;
  for (double &x : c) {
    all.push_back(submit(&x));
    handles.push_back(all.back());
  }
  EXPECT_OK(sg_job_wait_all(handles.data(), 5, SG_FOREVER, nullptr));
  for (const double x : c) EXPECT_EQ(10, x);
  EXPECT_OK(sg_job_wait_all(nullptr, 0, SG_FOREVER, nullptr));
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  handles.push_back(gated.get());
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_job_wait_all(handles.data(), 6, 10 * ms, nullptr));
  sg_job *stale = all[2].get();
  all[2].reset();
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_job_wait_all(handles.data(), 6, SG_FOREVER, nullptr))
      << "otherwise this waits for ever";
  handles.erase(std::find(handles.begin(), handles.end(), stale));
  gated.open();
  EXPECT_OK(sg_job_wait_all(handles.data(), 5, SG_FOREVER, nullptr));
}

TEST_P(jobs, wait_all_reports_the_first_failure) {
  double c = 0, d = 0;
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  sg_job *const first = gated.get();
  sg_submit options = SG_SUBMIT_INIT;
  options.after = &first;
  options.after_count = 1;
  job cancelled = submit(&c, &options);
  sg_job *const second = cancelled;
  options.after = &second;
  job dependent = submit(&d, &options);
  EXPECT_OK(sg_job_cancel(cancelled));
  gated.open();
  sg_job *const in_order[] = {first, cancelled, dependent}, *const reversed[] = {dependent, cancelled, first};
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait_all(in_order, 3, SG_FOREVER, nullptr));
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, sg_job_wait_all(reversed, 3, SG_FOREVER, nullptr));
}

TEST_P(jobs, the_status_of_a_job_is_told_from_that_of_the_call) {
  double c = 0;
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  sg_job *const first = gated.get();
  sg_submit options = SG_SUBMIT_INIT;
  options.after = &first;
  options.after_count = 1;
  job cancelled = submit(&c, &options);
  sg_job *const running[] = {first}, *const both[] = {first, cancelled}, *const ended[] = {cancelled};
  std::int32_t index = 77;
  // Each call begins with another value in `status`, and sets it.
  sg_status status = SG_STATUS_INTERNAL;
  const auto expect = [&](sg_status call, sg_status wanted_call, sg_status wanted) {
    EXPECT_STATUS(wanted_call, call);
    EXPECT_STATUS(wanted, status);
    status = SG_STATUS_INTERNAL;
  };
  expect(sg_job_query(first, &status), SG_STATUS_NOT_READY, SG_STATUS_NOT_READY);
  expect(sg_job_wait(first, 0, &status), SG_STATUS_TIMEOUT, SG_STATUS_NOT_READY);
  expect(sg_job_wait(first, -7, &status), SG_STATUS_INVALID_ARGUMENT, SG_STATUS_NOT_READY);
  expect(sg_job_wait(nullptr, 0, &status), SG_STATUS_INVALID_HANDLE, SG_STATUS_NOT_READY);
  expect(sg_job_query(nullptr, &status), SG_STATUS_INVALID_HANDLE, SG_STATUS_NOT_READY);
  expect(sg_job_wait_all(both, 2, 0, &status), SG_STATUS_TIMEOUT, SG_STATUS_NOT_READY);
  expect(sg_job_wait_any(running, 1, 0, &index, &status), SG_STATUS_TIMEOUT, SG_STATUS_NOT_READY);
  EXPECT_OK(sg_job_cancel(cancelled));
  gated.open();
  expect(sg_job_wait_all(both, 2, SG_FOREVER, &status), SG_STATUS_OK, SG_STATUS_CANCELLED);
  expect(sg_job_wait_all(both, -1, SG_FOREVER, &status), SG_STATUS_INVALID_ARGUMENT, SG_STATUS_NOT_READY);
  expect(sg_job_wait(cancelled, SG_FOREVER, &status), SG_STATUS_OK, SG_STATUS_CANCELLED);
  std::string text(256, '\0');
  EXPECT_OK(sg_job_message(cancelled, text.data(), text.size(), nullptr));
  EXPECT_STREQ(text.c_str(), sg_last_error_message());
  expect(sg_job_query(cancelled, &status), SG_STATUS_OK, SG_STATUS_CANCELLED);
  expect(sg_job_wait_any(ended, 1, SG_FOREVER, &index, &status), SG_STATUS_OK, SG_STATUS_CANCELLED);
  EXPECT_EQ(0, index);
  expect(sg_job_wait_all(nullptr, 0, SG_FOREVER, &status), SG_STATUS_OK, SG_STATUS_OK);
  expect(sg_job_wait(first, SG_FOREVER, &status), SG_STATUS_OK, SG_STATUS_OK);
}

TEST_P(jobs, wait_any) {
  double c = 0;
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  context other = open_context(GetParam());
  const sg_gemm_desc desc = make_gemm(&a_, &b_, &c, 1, 1, 1);
  job quick;
  ASSERT_OK(sg_gemm_async(other, &desc, nullptr, quick.out()));
  sg_job *const both[] = {gated.get(), quick}, *const closed[] = {gated.get(), gated.get()};
  std::int32_t index = 77;
  EXPECT_OK(sg_job_wait_any(both, 2, SG_FOREVER, &index, nullptr));
  EXPECT_EQ(1, index);
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_job_wait_any(closed, 2, 10 * ms, &index, nullptr));
  EXPECT_EQ(-1, index);
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_job_wait_any(closed, 2, 0, &index, nullptr));
  gated.open();
  EXPECT_OK(sg_job_wait(gated.get(), SG_FOREVER, nullptr));
  EXPECT_OK(sg_job_wait_any(both, 2, SG_FOREVER, &index, nullptr));
  EXPECT_EQ(0, index) << "both have completed: the lowest index";
}

TEST_P(jobs, wait_any_wakes_for_a_job_that_completes_later) {
  gated_job first(context_);
  SKIP_WITHOUT_GATE(first);
  context other = open_context(GetParam());
  gated_job second(other);
  std::thread opener([&] {
    std::this_thread::sleep_for(milliseconds(20));
    second.open();
  });
  sg_job *const both[] = {first.get(), second.get()};
  std::int32_t index = 77;
  EXPECT_OK(sg_job_wait_any(both, 2, SG_FOREVER, &index, nullptr));
  EXPECT_EQ(1, index);
  opener.join();
}

TEST_P(jobs, after_orders_jobs_without_common_data) {
  double c = 0, d = 0;
  const context wide = open_context(GetParam(), 2);
  gated_job gated(wide);
  SKIP_WITHOUT_GATE(gated);
  sg_job *const first = gated.get();
  sg_submit options = SG_SUBMIT_INIT;
  options.after = &first;
  options.after_count = 1;
  const sg_gemm_desc ordered = make_gemm(&a_, &b_, &c, 1, 1, 1), free = make_gemm(&a_, &b_, &d, 1, 1, 1);
  job later, beside;
  ASSERT_OK(sg_gemm_async(wide, &ordered, &options, later.out()));
  ASSERT_OK(sg_gemm_async(wide, &free, nullptr, beside.out()));
  EXPECT_OK(sg_job_wait(beside, SG_FOREVER, nullptr))
      << "a job without predecessors runs concurrently with the gated job";
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_job_query(later, nullptr));
  EXPECT_EQ(0, c);
  gated.open();
  EXPECT_OK(sg_job_wait(later, SG_FOREVER, nullptr));
  EXPECT_EQ(10, c);
}

TEST_P(jobs, after_jobs_of_another_context_and_completed_jobs) {
  double c = 0, d = 0;
  const context other = open_context("cpu", 1);
  gated_job gated(other);
  SKIP_WITHOUT_GATE(gated);
  job completed = submit(&d);
  ASSERT_OK(sg_job_wait(completed, SG_FOREVER, nullptr));
  sg_job *const before[] = {gated.get(), completed};
  sg_submit options = SG_SUBMIT_INIT;
  options.after = before;
  options.after_count = 2;
  job later = submit(&c, &options);
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_job_wait(later, 10 * ms, nullptr));
  gated.open();
  EXPECT_OK(sg_job_wait(later, SG_FOREVER, nullptr));
  EXPECT_EQ(10, c);
}

TEST_P(jobs, submissions_without_a_job_handle) {
  std::vector<double> c(200);
  for (double &x : c) {
    const sg_gemm_desc desc = make_gemm(&a_, &b_, &x, 1, 1, 1);
    ASSERT_OK(sg_gemm_async(context_, &desc, nullptr, nullptr));
  }
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  EXPECT_EQ(std::vector<double>(200, 10.0), c);
}

TEST(last_error, has_the_status_and_the_text_of_the_latest_failure) {
  sg_status status = SG_STATUS_OK;
  char text[200] = "", cut[9] = "";
  std::uint64_t needed = 0, size = 0;
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = "cuda:99";
  sg_context *none = nullptr;
  EXPECT_STATUS(SG_STATUS_NO_DEVICE, sg_context_create(&options, &none));
  EXPECT_OK(sg_last_error(&status, text, sizeof text, &needed));
  EXPECT_STREQ(sg_last_error_message(), text);
  EXPECT_EQ(std::strlen(text) + 1, needed);
  EXPECT_EQ(SG_STATUS_NO_DEVICE, status);
  EXPECT_OK(sg_last_error(nullptr, nullptr, 0, &size));
  EXPECT_EQ(needed, size);
  EXPECT_OK(sg_last_error(nullptr, cut, sizeof cut, nullptr));
  EXPECT_EQ(std::string(text, 8), cut);
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_last_error(nullptr, nullptr, 1, nullptr));
  EXPECT_OK(sg_last_error(&status, nullptr, 0, nullptr));
  EXPECT_EQ(SG_STATUS_INVALID_ARGUMENT, status);
}

ON_EACH_DEVICE(jobs);

}  // namespace
}  // namespace sg_test
