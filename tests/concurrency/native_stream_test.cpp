// SPDX-License-Identifier: Apache-2.0
// Caller streams: the library's work runs between the caller's own, on the backend of ordered_backend.cpp.
#include "native_stream.hpp"

#include <atomic>
#include <thread>

namespace sg_test {
namespace {

class native_streams : public testing::Test {
 protected:
  void SetUp() override {
    context_ = open_context("ordered", 2);
    ASSERT_OK(sg_stream_wrap(context_, native_.get(), wrapper_.out()));
  }
  sg_submit on_wrapper() const {
    sg_submit options = SG_SUBMIT_INIT;
    options.stream = wrapper_;
    return options;
  }
  // to = 2 * from
  job twice(matrix &to, const matrix &from, const sg_submit *options) {
    return doubling_.submit(context_, to, from, options);
  }

  native_stream native_;  // outlives its wrapper
  context context_;
  stream wrapper_;
  doubling doubling_;
};

TEST_F(native_streams, work_goes_between_the_callers_own) {
  const sg_submit options = on_wrapper();
  const matrix first = all(1);
  matrix in = all(-1), middle = all(-1), out = all(-1), seen = all(-1);
  native_.hold();
  native_.copy(in, first);
  const job one = twice(middle, in, &options);  // returns although the stream is blocked
  const job two = twice(out, middle, &options);
  native_.copy(seen, out);
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_job_query(one, nullptr));
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_stream_query(wrapper_));
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_stream_synchronize(wrapper_, 1000000));
  EXPECT_EQ(all(-1), middle);
  native_.release();
  native_.finish();
  EXPECT_EQ(all(4), seen);
  EXPECT_OK(sg_job_wait(two, SG_FOREVER, nullptr));
  EXPECT_OK(sg_job_wait(one, 0, nullptr)) << "it completed before the other";
}

// Jobs without a stream whose operands overlap run before and after, as submitted.
TEST_F(native_streams, other_work_is_ordered_by_its_operands) {
  const sg_submit options = on_wrapper();
  const matrix first = all(1);
  matrix before = all(-1), middle = all(-1), after = all(-1);
  native_.hold();
  const job one = twice(before, first, nullptr);
  const job two = twice(middle, before, &options);
  const job three = twice(after, middle, nullptr);
  EXPECT_OK(sg_job_wait(one, SG_FOREVER, nullptr)) << "it does not depend on the native stream";
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_job_wait(three, 1000000, nullptr));
  native_.release();
  EXPECT_OK(sg_job_wait(three, SG_FOREVER, nullptr));
  EXPECT_EQ(all(8), after);
}

TEST_F(native_streams, events_stand_between_the_callers_own) {
  const matrix first = all(1);
  matrix in = all(-1), out = all(-1), back = all(-1), seen = all(-1);
  stream other;
  event reached, done;
  ASSERT_OK(sg_stream_create(context_, nullptr, other.out()));
  ASSERT_OK(sg_event_create(context_, reached.out()));
  ASSERT_OK(sg_event_create(context_, done.out()));
  native_.hold();
  native_.copy(in, first);
  ASSERT_OK(sg_event_record(reached, wrapper_));  // the stream has no work of the library
  ASSERT_OK(sg_stream_wait_event(other, reached));
  sg_submit options = SG_SUBMIT_INIT;
  options.stream = other;
  options.flags = SG_SUBMIT_UNTRACKED;
  const job work = twice(out, in, &options);
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_event_query(reached));
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_job_wait(work, 1000000, nullptr));
  native_.release();
  EXPECT_OK(sg_job_wait(work, SG_FOREVER, nullptr));
  EXPECT_EQ(all(2), out);
  // The reverse: the native stream waits for the library's.
  const job more = twice(back, out, &options);
  ASSERT_OK(sg_event_record(done, other));
  ASSERT_OK(sg_stream_wait_event(wrapper_, done));
  native_.copy(seen, back);
  native_.finish();
  EXPECT_EQ(all(4), seen);
  EXPECT_OK(sg_job_wait(more, SG_FOREVER, nullptr));  // the thread that dispatched it may still have to notify
}

TEST_F(native_streams, synchronizing_waits_for_the_callers_own) {
  const matrix first = all(1);
  matrix in = all(-1);
  native_.hold();
  native_.copy(in, first);
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_stream_synchronize(wrapper_, 1000000));
  native_.release();
  EXPECT_OK(sg_stream_synchronize(wrapper_, SG_FOREVER));
  EXPECT_EQ(first, in);
}

// A GEMM of more than one command has completed when its submission returns.
TEST_F(native_streams, work_of_several_commands_is_waited_for) {
  const matrix first = all(1);
  matrix in = all(-1), out = all(-1);
  const sg_gemm_desc desc = doubling_.desc(out, in);
  sg_plan_options split = SG_PLAN_OPTIONS_INIT;
  split.split = SG_SPLIT_K;
  split.parts = 2;
  sg_submit options = on_wrapper();
  options.plan = &split;
  native_.hold();
  native_.copy(in, first);
  std::atomic<bool> returned = false;
  job made;
  std::thread submitter([&] {
    EXPECT_OK(sg_gemm_async(context_, &desc, &options, made.out()));
    EXPECT_OK(sg_job_query(made, nullptr));
    returned = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(returned);
  native_.release();
  submitter.join();
  EXPECT_EQ(all(2), out);
}

TEST_F(native_streams, the_last_release_waits) {
  const sg_submit options = on_wrapper();
  const matrix first = all(1);
  matrix out = all(-1);
  native_.hold();
  const job work = twice(out, first, &options);
  std::atomic<bool> released = false;
  std::thread releaser([&] {
    EXPECT_OK(wrapper_.reset());
    released = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(released);
  native_.release();
  releaser.join();
  EXPECT_OK(sg_job_wait(work, 0, nullptr));
  EXPECT_EQ(all(2), out);
}

TEST_F(native_streams, wrappers_of_a_stream_are_limited) {
  std::vector<stream> more(31);
  for (stream &each : more) ASSERT_OK(sg_stream_wrap(context_, native_.get(), each.out()));
  stream last;
  EXPECT_STATUS(SG_STATUS_BUSY, sg_stream_wrap(context_, native_.get(), last.out()));
  EXPECT_EQ(nullptr, last.get());
  more.pop_back();
  EXPECT_OK(sg_stream_wrap(context_, native_.get(), last.out()));
}

// Threads with a native stream each pass one matrix around; a thread that reads too early sees an old value.
TEST_F(native_streams, many_at_once) {
  constexpr int threads = 4, rounds = 100;
  std::vector<std::thread> all_threads;
  for (int t = 0; t < threads; ++t) {
    all_threads.emplace_back([&] {
      native_stream own;
      stream wrapper;
      ASSERT_OK(sg_stream_wrap(context_, own.get(), wrapper.out()));
      sg_submit options = SG_SUBMIT_INIT;
      options.stream = wrapper;
      matrix x = all(1), y = all(-1);
      for (int i = 0; i < rounds; ++i) {
        x = all(i);
        own.copy(y, x);
        twice(x, y, &options);
        if (i % 3 == 0) twice(y, x, nullptr);
        own.finish();
        EXPECT_EQ(all(2 * i), x);
        if (i % 3 == 0) {
          EXPECT_OK(sg_context_synchronize(context_, SG_FOREVER));
        }
      }
    });
  }
  for (std::thread &each : all_threads) each.join();
}

}  // namespace
}  // namespace sg_test
