// SPDX-License-Identifier: Apache-2.0
// Completion callbacks: once each, on a library thread, free to call anything except a wait for their own job.
#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include "support/counter.hpp"
#include "support/harness.hpp"

namespace sg_test {
namespace {

// A callback as a lambda; lives until it has been called.
class callback {
 public:
  explicit callback(std::function<void(sg_job *, sg_status)> body) : body_(std::move(body)) {}
  static void call(sg_job *job, sg_status status, void *user) {
    auto *self = static_cast<callback *>(user);
    self->thread_ = std::this_thread::get_id();
    if (self->body_) self->body_(job, status);
    self->status_ = status;
    self->calls_.add();
  }
  void wait(int calls = 1) { calls_.wait_for(calls); }
  int calls() { return calls_.value(); }
  sg_status status() const { return static_cast<sg_status>(status_.load()); }
  std::thread::id thread() const { return thread_; }

 private:
  std::function<void(sg_job *, sg_status)> body_;
  std::atomic<int> status_{99};
  counter calls_;
  std::thread::id thread_;
};

class callbacks : public on_each_device {
 protected:
  job multiply(double *c) {
    const sg_gemm_desc desc = make_gemm(&a_, &b_, c, 1, 1, 1);
    job result;
    EXPECT_OK(sg_gemm_async(context_, &desc, nullptr, result.out()));
    return result;
  }
  double a_ = 2, b_ = 3, c_ = 0;
};

TEST_P(callbacks, called_once_with_the_status) {
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  callback before([](sg_job *, sg_status) {}), twice([](sg_job *, sg_status) {}), after([](sg_job *, sg_status) {});
  ASSERT_OK(sg_job_on_complete(gated.get(), callback::call, &before));
  ASSERT_OK(sg_job_on_complete(gated.get(), callback::call, &twice));
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(0, before.calls());
  gated.open();
  before.wait();
  twice.wait();
  ASSERT_OK(sg_job_on_complete(gated.get(), callback::call, &after));
  after.wait();
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  for (callback *seen : {&before, &twice, &after}) {
    EXPECT_EQ(1, seen->calls());
    EXPECT_EQ(SG_STATUS_OK, seen->status());
    EXPECT_NE(std::this_thread::get_id(), seen->thread()) << "on a library thread, even if the job has completed";
  }
  EXPECT_EQ(before.thread(), after.thread());
}

TEST_P(callbacks, called_for_cancelled_jobs_too) {
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  sg_job *const first = gated.get();
  sg_submit options = SG_SUBMIT_INIT;
  options.after = &first;
  options.after_count = 1;
  const sg_gemm_desc desc = make_gemm(&a_, &b_, &c_, 1, 1, 1);
  job cancelled;
  ASSERT_OK(sg_gemm_async(context_, &desc, &options, cancelled.out()));
  callback seen(nullptr);
  ASSERT_OK(sg_job_on_complete(cancelled, callback::call, &seen));
  ASSERT_OK(sg_job_cancel(cancelled));
  gated.open();
  seen.wait();
  EXPECT_EQ(SG_STATUS_CANCELLED, seen.status());
}

// Each callback submits the next job, a hundred times over.
TEST_P(callbacks, a_callback_may_submit) {
  std::vector<double> c(100);
  std::size_t next = 0;
  std::function<void(sg_job *, sg_status)> step;
  callback chain([&](sg_job *job, sg_status status) { step(job, status); });
  step = [&](sg_job *, sg_status status) {
    EXPECT_EQ(SG_STATUS_OK, status);
    if (next == c.size()) return;
    job link = multiply(&c[next++]);
    EXPECT_OK(sg_job_on_complete(link, callback::call, &chain));
  };
  step(nullptr, SG_STATUS_OK);
  chain.wait(static_cast<int>(c.size()));
  EXPECT_EQ(std::vector<double>(100, 6.0), c);
}

TEST_P(callbacks, a_callback_may_release_its_own_job) {
  for (int i = 0; i < 20; ++i) {
    std::promise<sg_status> released;
    job handle = multiply(&c_);
    callback seen([&](sg_job *job, sg_status) { released.set_value(sg_job_release(job)); });
    ASSERT_OK(sg_job_on_complete(handle.give_up(), callback::call, &seen));
    EXPECT_EQ(SG_STATUS_OK, released.get_future().get());
    seen.wait();
  }
}

// The job of a callback is complete; a call that would wait for the callback returns an error instead of hanging.
TEST_P(callbacks, a_callback_may_wait_for_its_own_job_but_not_for_its_context) {
  stream own;
  ASSERT_OK(sg_stream_create(context_, nullptr, own.out()));
  sg_submit options = SG_SUBMIT_INIT;
  options.stream = own;
  gated_job gated(context_, &options);
  SKIP_WITHOUT_GATE(gated);
  constexpr sg_status unset = SG_STATUS_INTERNAL;
  sg_status waited = unset, all = unset, any = unset, context_wide = unset, stream_wide = unset;
  callback seen([&](sg_job *job, sg_status) {
    std::int32_t index = 0;
    waited = sg_job_wait(job, SG_FOREVER, nullptr);
    all = sg_job_wait_all(&job, 1, SG_FOREVER, nullptr);
    any = sg_job_wait_any(&job, 1, SG_FOREVER, &index, nullptr);
    context_wide = sg_context_synchronize(context_, SG_FOREVER);
    stream_wide = sg_stream_synchronize(own, SG_FOREVER);
  });
  ASSERT_OK(sg_job_on_complete(gated.get(), callback::call, &seen));
  gated.open();
  seen.wait();
  EXPECT_OK(waited);
  EXPECT_OK(all);
  EXPECT_OK(any);
  EXPECT_STATUS(SG_STATUS_DEADLOCK, context_wide);
  EXPECT_OK(stream_wide);
}

// Another job completes before its callback returns, so a callback may wait for it.
TEST_P(callbacks, a_callback_may_wait_for_another_job) {
  job first = multiply(&c_);
  double other = 0;
  sg_status status = SG_STATUS_INTERNAL;
  callback seen([&](sg_job *, sg_status) {
    job second = multiply(&other);
    status = sg_job_wait(second, SG_FOREVER, nullptr);
  });
  ASSERT_OK(sg_job_on_complete(first, callback::call, &seen));
  seen.wait();
  EXPECT_EQ(SG_STATUS_OK, status);
  EXPECT_EQ(6, other);
}

TEST_P(callbacks, the_job_answers_inside_its_callback) {
  job handle = multiply(&c_);
  sg_status polled = SG_STATUS_INTERNAL, stats_status = SG_STATUS_INTERNAL, text_status = SG_STATUS_INTERNAL;
  sg_job_statistics stats = SG_JOB_STATISTICS_INIT;
  callback seen([&](sg_job *job, sg_status) {
    char text[10];
    polled = sg_job_query(job, nullptr);
    stats_status = sg_job_get_statistics(job, &stats);
    text_status = sg_job_message(job, text, sizeof text, nullptr);
  });
  ASSERT_OK(sg_job_on_complete(handle, callback::call, &seen));
  seen.wait();
  EXPECT_EQ(SG_STATUS_OK, polled);
  EXPECT_EQ(SG_STATUS_OK, stats_status);
  EXPECT_EQ(SG_STATUS_OK, text_status);
  EXPECT_EQ(2.0, stats.flops);
}

// A slow callback delays other callbacks only, not jobs.
TEST_P(callbacks, a_slow_callback_delays_no_job) {
  std::promise<void> release;
  auto released = release.get_future().share();
  job first = multiply(&c_);
  callback slow([released](sg_job *, sg_status) { released.wait(); });
  ASSERT_OK(sg_job_on_complete(first, callback::call, &slow));
  std::vector<double> c(50);
  for (double &x : c) EXPECT_OK(sg_job_wait(multiply(&x), SG_FOREVER, nullptr));
  EXPECT_EQ(std::vector<double>(50, 6.0), c);
  EXPECT_EQ(0, slow.calls());
  release.set_value();
  slow.wait();
}

// A callback releases the last reference to everything.
TEST_P(callbacks, a_callback_releases_the_last_reference_to_the_context) {
  for (int i = 0; i < 20; ++i) {
    context last = open_context(GetParam());
    stream s;
    ASSERT_OK(sg_stream_create(last, nullptr, s.out()));
    sg_submit options = SG_SUBMIT_INIT;
    options.stream = s;
    const sg_gemm_desc desc = make_gemm(&a_, &b_, &c_, 1, 1, 1);
    job handle;
    ASSERT_OK(sg_gemm_async(last, &desc, &options, handle.out()));
    std::promise<void> dropped;
    callback seen([&](sg_job *job, sg_status) {
      EXPECT_OK(sg_job_release(job));
      EXPECT_OK(s.reset());
      EXPECT_OK(last.reset());
      dropped.set_value();
    });
    ASSERT_OK(sg_job_on_complete(handle.give_up(), callback::call, &seen));
    dropped.get_future().wait();
    seen.wait();
  }
}

ON_EACH_DEVICE(callbacks);

}  // namespace
}  // namespace sg_test
