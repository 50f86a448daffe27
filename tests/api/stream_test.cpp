// SPDX-License-Identifier: Apache-2.0
// Streams and events: query, synchronize, wait for events, record, elapsed time, callbacks.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "support/counter.hpp"
#include "support/gemm_plan.h"
#include "support/harness.hpp"

namespace sg_test {
namespace {

class streams : public testing::TestWithParam<const char *> {
 protected:
  void SetUp() override {
    context_ = open_context(GetParam(), 2);
    ASSERT_OK(sg_stream_create(context_, nullptr, first_.out()));
    ASSERT_OK(sg_stream_create(context_, nullptr, second_.out()));
    ASSERT_OK(sg_event_create(context_, event_.out()));
  }
  static sg_submit on(sg_stream *s) {
    sg_submit options = SG_SUBMIT_INIT;
    options.stream = s;
    return options;
  }
  job multiply(double *c, sg_stream *s) {
    const sg_gemm_desc desc = make_gemm(&a_, &b_, c, 1, 1, 1);
    const sg_submit options = on(s);
    job result;
    EXPECT_OK(sg_gemm_async(context_, &desc, &options, result.out()));
    return result;
  }
  context context_;
  stream first_, second_;
  event event_;
  double a_ = 2, b_ = 3;
};

TEST_P(streams, query_and_synchronize) {
  EXPECT_OK(sg_stream_query(first_));
  EXPECT_OK(sg_stream_synchronize(first_, 0));
  const sg_submit options = on(first_);
  gated_job gated(context_, &options);
  SKIP_WITHOUT_GATE(gated);
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_stream_query(first_));
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_stream_synchronize(first_, 0));
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_stream_synchronize(first_, 10 * ms));
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_context_synchronize(context_, 0));
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_context_synchronize(context_, 10 * ms));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_context_synchronize(context_, -2));
  EXPECT_OK(sg_stream_query(second_));
  EXPECT_OK(sg_stream_synchronize(second_, SG_FOREVER));
  gated.open();
  EXPECT_OK(sg_stream_synchronize(first_, SG_FOREVER));
  EXPECT_OK(sg_context_synchronize(context_, SG_FOREVER));
  EXPECT_OK(sg_context_synchronize(context_, 0)) << "nothing is in flight";
  EXPECT_OK(sg_stream_query(first_));
  EXPECT_EQ(gated_job::expected, *gated.result());
}

TEST_P(streams, no_limit_unless_asked_for) {
  std::int32_t units = -1;
  EXPECT_OK(sg_stream_compute_units(first_, &units));
  EXPECT_EQ(0, units);
  stream all;
  EXPECT_OK(create_stream(context_, 1, 0, all.out()));
  EXPECT_OK(sg_stream_compute_units(all, &units));
  EXPECT_EQ(0, units);
  EXPECT_OK(sg_stream_priority(all, &units));
  EXPECT_EQ(1, units);
}

TEST_P(streams, a_limit_is_granted_up_to_what_there_is) {
  sg_device_info device = SG_DEVICE_INFO_INIT;
  ASSERT_OK(sg_context_get_device_info(context_, 0, &device));
  for (const std::int32_t wanted : {1, 2, device.compute_units, device.compute_units + 1, INT32_MAX}) {
    stream limited;
    ASSERT_OK(create_stream(context_, 0, wanted, limited.out()));
    std::int32_t units = -1;
    EXPECT_OK(sg_stream_compute_units(limited, &units));
    std::int32_t is_partition = -1;
    EXPECT_OK(sg_stream_is_partition(limited, &is_partition));
    if (is_partition == 1) {
      EXPECT_GE(units, 1);
      EXPECT_LE(units, std::min(wanted, device.compute_units - 1));
    } else {
      EXPECT_EQ(std::min(wanted, device.compute_units), units);
    }
  }
}

TEST_P(streams, wrong_limits_are_named) {
  sg_stream *none = reinterpret_cast<sg_stream *>(1);
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, create_stream(context_, 0, -1, &none));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "compute_units is -1"));
  EXPECT_EQ(nullptr, none);
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, create_stream(context_, 2, 1, &none));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, create_stream(context_, 0, 1, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_stream_compute_units(first_, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_stream_compute_units(reinterpret_cast<sg_stream *>(77), nullptr));
}

// A GEMM large enough for two workers is split for one; its result is the same.
TEST(stream_limits, on_the_cpu_a_gemm_is_split_for_the_limit) {
  constexpr std::int64_t n = 700;
  const context context = open_context("cpu", 2);
  std::vector<double> a(n * n), b(n * n), c(n * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = double(i % 5), b[i] = double(i % 3);
  const sg_gemm_desc desc = make_gemm(a.data(), b.data(), c.data(), n, n, n);
  const auto commands_on = [&](std::int32_t units) {
    std::fill(c.begin(), c.end(), -1.0);
    stream in;
    EXPECT_OK(create_stream(context, 0, units, in.out()));
    sg_submit options = SG_SUBMIT_INIT;
    options.stream = in;
    job done;
    EXPECT_OK(sg_gemm_async(context, &desc, &options, done.out()));
    EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
    double sum = 0;
    for (std::int64_t l = 0; l < n; ++l) sum += a[std::size_t(3 * n + l)] * b[std::size_t(l * n + 5)];
    EXPECT_EQ(sum, c[3 * n + 5]);
    sg_job_statistics seen = SG_JOB_STATISTICS_INIT;
    EXPECT_OK(sg_job_get_statistics(done, &seen));
    // On one worker the commands run one after another.
    return double(seen.end_ns - seen.start_ns) * 1e-9 / seen.busy_seconds;
  };
  commands_on(0);
  EXPECT_GT(commands_on(1), 0.999) << "nothing ran beside anything else, though the same GEMM just did";

  sg_plan_options options = SG_PLAN_OPTIONS_INIT;
  options.split = SG_SPLIT_M;
  options.parts = 2;
  plan cut;
  stream in;
  ASSERT_OK(create_gemm_plan(context, &desc, &options, cut.out()));
  ASSERT_OK(create_stream(context, 0, 1, in.out()));
  sg_submit submit = SG_SUBMIT_INIT;
  submit.stream = in;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, run_gemm_plan(cut, &desc, &submit, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "cut for 2 workers")) << sg_last_error_message();
}

// In virtual time a GEMM takes longer with fewer multiprocessors, in a graph too.
TEST(stream_limits, on_a_device_a_gemm_takes_longer) {
  constexpr std::int64_t n = 2048;
  const context context = open_context("sim:h200?timing-only");
  buffer memory;
  void *data = nullptr;
  ASSERT_OK(sg_buffer_create(context, 3 * n * n * sizeof(double), nullptr, memory.out()));
  ASSERT_OK(sg_buffer_data(memory, &data));
  auto *x = static_cast<double *>(data);
  const sg_gemm_desc desc = make_gemm(x, x + n * n, x + 2 * n * n, n, n, n);
  const auto seconds_on = [&](std::int32_t units, bool recorded) {
    stream in;
    EXPECT_OK(create_stream(context, 0, units, in.out()));
    sg_submit options = SG_SUBMIT_INIT;
    options.stream = in;
    sg_graph *graph = nullptr;
    job done, before;
    EXPECT_OK(sg_gemm_async(context, &desc, nullptr, before.out()));
    EXPECT_OK(sg_job_wait(before, SG_FOREVER, nullptr));
    if (recorded) {
      EXPECT_OK(sg_graph_create(context, &graph));
      options.graph = graph;
      EXPECT_OK(sg_gemm_async(context, &desc, &options, nullptr));
      EXPECT_OK(sg_graph_run_async(graph, nullptr, done.out()));
    } else {
      EXPECT_OK(sg_gemm_async(context, &desc, &options, done.out()));
    }
    EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
    EXPECT_OK(sg_graph_release(graph));
    // Measured from the completion of the previous job, when the device had nothing else to do.
    sg_job_statistics earlier = SG_JOB_STATISTICS_INIT, seen = SG_JOB_STATISTICS_INIT;
    EXPECT_OK(sg_job_get_statistics(before, &earlier));
    EXPECT_OK(sg_job_get_statistics(done, &seen));
    job after;
    EXPECT_OK(sg_gemm_async(context, &desc, nullptr, after.out()));
    EXPECT_OK(sg_job_wait(after, SG_FOREVER, nullptr));
    sg_job_statistics later = SG_JOB_STATISTICS_INIT;
    EXPECT_OK(sg_job_get_statistics(after, &later));
    return double(later.start_ns - earlier.end_ns) * 1e-9;
  };
  const double whole = seconds_on(0, false);
  EXPECT_NEAR(2, seconds_on(66, false) / whole, 0.4);
  EXPECT_NEAR(12, seconds_on(11, false) / whole, 2.5);
  EXPECT_NEAR(12, seconds_on(11, true) / whole, 2.5);
}

TEST_P(streams, priorities_are_kept) {
  for (const std::int32_t priority : {-1, 0, 1}) {
    stream s;
    std::int32_t seen = 7;
    ASSERT_OK(create_stream(context_, priority, 0, s.out()));
    EXPECT_OK(sg_stream_priority(s, &seen));
    EXPECT_EQ(priority, seen);
  }
}

TEST_P(streams, native_streams_do_not_exist_here) {
  if (std::strncmp(GetParam(), "cuda", 4) == 0) GTEST_SKIP() << "they do";
  int native = 0;
  sg_stream *out = reinterpret_cast<sg_stream *>(1);
  EXPECT_STATUS(SG_STATUS_UNSUPPORTED, sg_stream_wrap(context_, &native, &out));
  EXPECT_EQ(nullptr, out);
}

// Its jobs would complete as soon as another thread looked for them, in a stream of its own.
TEST_P(streams, the_stream_of_each_thread_cannot_be_wrapped) {
  if (std::strncmp(GetParam(), "cuda", 4) != 0) GTEST_SKIP() << "there are no native streams";
  sg_stream *out = reinterpret_cast<sg_stream *>(1);
  void *const of_each_thread = reinterpret_cast<void *>(2);  // cudaStreamPerThread
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_stream_wrap(context_, of_each_thread, &out));
  EXPECT_EQ(nullptr, out);
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "native is cudaStreamPerThread"));
}

TEST_P(streams, native_events_do_not_exist_here) {
  if (std::strncmp(GetParam(), "cuda", 4) == 0) GTEST_SKIP() << "they do";
  int native = 0;
  sg_event *wrapper = reinterpret_cast<sg_event *>(1);
  EXPECT_STATUS(SG_STATUS_UNSUPPORTED, sg_event_wrap(context_, &native, &wrapper));
  EXPECT_EQ(nullptr, wrapper);
  event own;
  ASSERT_OK(sg_event_create(context_, own.out()));
  void *found = &native;
  EXPECT_STATUS(SG_STATUS_UNSUPPORTED, sg_event_native(own, &found));
  EXPECT_EQ(nullptr, found);
  EXPECT_NE(std::string::npos, std::string(sg_last_error_message()).find("native events")) << sg_last_error_message();
  EXPECT_OK(sg_event_record(own, first_)) << "its stream is unchanged";
  EXPECT_OK(sg_event_wait(own, SG_FOREVER));
}

// Streams are cheap: far more than lanes, all in use at once.
TEST_P(streams, hundreds_of_streams) {
  std::vector<stream> many(300);
  std::vector<double> c(many.size());
  for (std::size_t i = 0; i < many.size(); ++i) {
    ASSERT_OK(create_stream(context_, static_cast<int>(i % 3) - 1, 0, many[i].out()));
    multiply(&c[i], many[i]);
  }
  for (const stream &s : many) ASSERT_OK(sg_stream_synchronize(s, SG_FOREVER));
  EXPECT_EQ(std::vector<double>(many.size(), 6.0), c);
}

// A released and reused stream carries no state over.
TEST_P(streams, a_stream_from_the_pool_is_idle) {
  const sg_submit options = on(first_);
  gated_job gated(context_, &options);
  SKIP_WITHOUT_GATE(gated);
  first_.reset();
  for (int i = 0; i < 4; ++i) {
    stream fresh;
    double c = 0;
    ASSERT_OK(sg_stream_create(context_, nullptr, fresh.out()));
    EXPECT_OK(sg_stream_query(fresh));
    EXPECT_OK(sg_job_wait(multiply(&c, fresh), SG_FOREVER, nullptr));
    EXPECT_EQ(6, c);
  }
}

TEST_P(streams, an_unrecorded_event_is_complete) {
  EXPECT_OK(sg_event_query(event_));
  EXPECT_OK(sg_event_wait(event_, 0));
  EXPECT_OK(sg_event_wait(event_, SG_FOREVER));
  EXPECT_OK(sg_stream_wait_event(first_, event_));
  double c = 0;
  EXPECT_OK(sg_job_wait(multiply(&c, first_), SG_FOREVER, nullptr));
}

TEST_P(streams, an_event_completes_after_earlier_work) {
  const sg_submit options = on(first_);
  gated_job gated(context_, &options);
  SKIP_WITHOUT_GATE(gated);
  ASSERT_OK(sg_event_record(event_, first_));
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_event_query(event_));
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_event_wait(event_, 0));
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_event_wait(event_, 10 * ms));
  gated.open();
  EXPECT_OK(sg_event_wait(event_, SG_FOREVER));
  EXPECT_OK(sg_event_query(event_));
  EXPECT_OK(sg_job_query(gated.get(), nullptr)) << "the event completed before the job in front of it";
}

TEST_P(streams, a_stream_waits_for_the_event_of_another) {
  const sg_submit options = on(first_);
  gated_job gated(context_, &options);
  SKIP_WITHOUT_GATE(gated);
  double before = 0, after = 0;
  ASSERT_OK(sg_event_record(event_, first_));
  job free = multiply(&before, second_);
  ASSERT_OK(sg_stream_wait_event(second_, event_));
  job held = multiply(&after, second_);
  EXPECT_OK(sg_job_wait(free, SG_FOREVER, nullptr)) << "submitted before the wait";
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_job_wait(held, 10 * ms, nullptr));
  gated.open();
  EXPECT_OK(sg_job_wait(held, SG_FOREVER, nullptr));
  EXPECT_EQ(6, after);
}

// Recording again moves the event; waits that have started keep to the earlier marker.
TEST_P(streams, recording_again) {
  const sg_submit on_first = on(first_);
  double c = 0;
  ASSERT_OK(sg_event_record(event_, second_));  // an idle stream: the event completes at once
  ASSERT_OK(sg_stream_wait_event(second_, event_));
  gated_job gated(context_, &on_first);
  SKIP_WITHOUT_GATE(gated);
  ASSERT_OK(sg_event_record(event_, first_));
  EXPECT_OK(sg_job_wait(multiply(&c, second_), SG_FOREVER, nullptr)) << "the stream waits for the earlier point";
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_event_query(event_));
  ASSERT_OK(sg_event_record(event_, second_));
  EXPECT_OK(sg_event_wait(event_, SG_FOREVER));
  gated.open();
}

TEST_P(streams, an_event_outlives_its_stream_in_waits) {
  const sg_submit on_first = on(first_);
  gated_job gated(context_, &on_first);
  SKIP_WITHOUT_GATE(gated);
  ASSERT_OK(sg_event_record(event_, first_));
  ASSERT_OK(sg_stream_wait_event(second_, event_));
  std::atomic<bool> woke = false;
  std::thread waiter([&, e = event_.get()] {
    EXPECT_OK(sg_event_wait(e, SG_FOREVER));
    woke = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  first_.reset();
  event_.reset();
  double c = 0;
  job held = multiply(&c, second_);
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_job_wait(held, 5 * ms, nullptr));
  EXPECT_FALSE(woke);
  gated.open();
  EXPECT_OK(sg_job_wait(held, SG_FOREVER, nullptr));
  waiter.join();
}

TEST_P(streams, elapsed_time) {
  event end;
  double seconds = -1;
  ASSERT_OK(sg_event_create(context_, end.out()));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_event_elapsed(event_, end, &seconds));
  EXPECT_EQ(0, seconds);
  ASSERT_OK(sg_event_record(event_, first_));
  const sg_submit options = on(first_);
  gated_job gated(context_, &options);
  SKIP_WITHOUT_GATE(gated);
  ASSERT_OK(sg_event_record(end, first_));
  seconds = -1;
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_event_elapsed(event_, end, &seconds));
  EXPECT_EQ(0, seconds);
  gated.open();
  ASSERT_OK(sg_event_wait(end, SG_FOREVER));
  EXPECT_OK(sg_event_elapsed(event_, end, &seconds));
  EXPECT_GT(seconds, 0);
  sg_job_statistics stats = SG_JOB_STATISTICS_INIT;
  ASSERT_OK(sg_job_get_statistics(gated.get(), &stats));
  EXPECT_GE(seconds, 0.99e-9 * static_cast<double>(stats.end_ns - stats.start_ns));
  double back = 0;
  EXPECT_OK(sg_event_elapsed(end, event_, &back));
  EXPECT_EQ(-seconds, back);
}

struct seen_callback {
  counter calls;
  std::atomic<int> status{99};
  static void on_event(sg_event *, sg_status status, void *user) {
    auto *seen = static_cast<seen_callback *>(user);
    seen->status = status;
    seen->calls.add();
  }
};

TEST_P(streams, event_callbacks) {
  seen_callback at_once, later;
  EXPECT_OK(sg_event_on_complete(event_, seen_callback::on_event, &at_once));
  at_once.calls.wait_for(1);
  EXPECT_EQ(SG_STATUS_OK, at_once.status);
  const sg_submit options = on(first_);
  gated_job gated(context_, &options);
  SKIP_WITHOUT_GATE(gated);
  ASSERT_OK(sg_event_record(event_, first_));
  EXPECT_OK(sg_event_on_complete(event_, seen_callback::on_event, &later));
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(0, later.calls.value());
  gated.open();
  later.calls.wait_for(1);
  EXPECT_EQ(SG_STATUS_OK, later.status);
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  EXPECT_EQ(1, at_once.calls.value());
  EXPECT_EQ(1, later.calls.value());
}

TEST_P(streams, synchronize_waits_for_everything) {
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  std::vector<double> c(30);
  for (double &x : c) multiply(&x, second_);
  std::atomic<bool> done = false;
  std::thread waiter([&] {
    EXPECT_OK(sg_context_synchronize(context_, SG_FOREVER));
    done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(done);
  gated.open();
  waiter.join();
  EXPECT_OK(sg_job_query(gated.get(), nullptr));
  EXPECT_EQ(std::vector<double>(30, 6.0), c);
}

TEST_P(streams, an_event_of_another_context_is_refused) {
  const context other = open_context(GetParam());
  event foreign;
  ASSERT_OK(sg_event_create(other, foreign.out()));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_stream_wait_event(first_, foreign));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_event_record(foreign, first_));
}

ON_EACH_DEVICE(streams);

}  // namespace
}  // namespace sg_test
