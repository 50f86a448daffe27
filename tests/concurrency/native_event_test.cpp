// SPDX-License-Identifier: Apache-2.0
// Caller events and exported native events, on the backend of ordered_backend.cpp.
#include <atomic>
#include <thread>

#include "native_stream.hpp"

namespace sg_test {
namespace {

class native_events : public testing::Test {
 protected:
  void SetUp() override {
    context_ = open_context("ordered", 2);
    ASSERT_OK(sg_stream_create(context_, nullptr, stream_.out()));
    ASSERT_OK(sg_event_create(context_, event_.out()));
    ASSERT_OK(sg_event_wrap(context_, native_event_.get(), wrapper_.out()));
  }
  // to = 2 * from; only the stream orders it.
  job twice(matrix &to, const matrix &from, sg_stream *on) {
    sg_submit options = SG_SUBMIT_INIT;
    options.stream = on;
    options.flags = SG_SUBMIT_UNTRACKED;
    return doubling_.submit(context_, to, from, &options);
  }

  native_event native_event_;
  native_stream native_, second_native_;
  context context_;
  stream stream_;
  event event_, wrapper_;
  doubling doubling_;
};

TEST_F(native_events, a_stream_waits_for_the_callers) {
  const matrix first = all(1);
  matrix in = all(-1), out = all(-1);
  native_.hold();
  native_.copy(in, first);
  native_.record(native_event_.get());
  ASSERT_OK(sg_stream_wait_event(stream_, wrapper_));
  const job work = twice(out, in, stream_);
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_event_query(wrapper_));
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_event_wait(wrapper_, 1000000));
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_job_wait(work, 1000000, nullptr));
  EXPECT_EQ(all(-1), out);
  native_.release();
  EXPECT_OK(sg_job_wait(work, SG_FOREVER, nullptr));
  EXPECT_EQ(all(2), out);
  EXPECT_OK(sg_event_wait(wrapper_, SG_FOREVER));
  EXPECT_OK(sg_event_query(wrapper_));
}

// A wait is for the record of the event at the time of the call.
TEST_F(native_events, a_wait_uses_the_record_at_the_time_of_the_call) {
  ASSERT_OK(sg_event_query(wrapper_)) << "never recorded";
  ASSERT_OK(sg_stream_wait_event(stream_, wrapper_));
  native_.hold();
  native_.record(native_event_.get());
  const matrix first = all(1);
  matrix out = all(-1);
  EXPECT_OK(sg_job_wait(twice(out, first, stream_), SG_FOREVER, nullptr));
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_event_query(wrapper_));
  native_.release();
  EXPECT_OK(sg_event_wait(wrapper_, SG_FOREVER));
}

// Two events in blocked streams: neither wait delays the other.
TEST_F(native_events, waits_are_independent) {
  native_event second;
  event second_wrapper;
  ASSERT_OK(sg_event_wrap(context_, second.get(), second_wrapper.out()));
  native_.hold();
  native_.record(native_event_.get());
  second_native_.hold();
  second_native_.record(second.get());
  ASSERT_OK(sg_stream_wait_event(stream_, wrapper_));
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_event_wait(second_wrapper, 1000000));
  second_native_.release();
  EXPECT_OK(sg_event_wait(second_wrapper, SG_FOREVER));
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_stream_query(stream_));
  native_.release();
  EXPECT_OK(sg_stream_synchronize(stream_, SG_FOREVER));
}

// The caller's stream waits for the library's, without a wait on the host.
TEST_F(native_events, the_callers_stream_waits_for_ours) {
  const matrix first = all(1);
  matrix in = all(-1), middle = all(-1), out = all(-1), seen = all(-1);
  native_.hold();
  native_.copy(in, first);
  native_.record(native_event_.get());
  ASSERT_OK(sg_stream_wait_event(stream_, wrapper_));
  twice(middle, in, stream_);
  const job last = twice(out, middle, stream_);
  ASSERT_OK(sg_event_record(event_, stream_));
  void *given = nullptr;
  ASSERT_OK(sg_event_native(event_, &given));  // returns although the work is blocked
  second_native_.wait(given);
  second_native_.copy(seen, out);
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_event_query(event_));
  EXPECT_EQ(all(-1), seen);
  native_.release();
  second_native_.finish();
  EXPECT_EQ(all(4), seen);
  EXPECT_OK(sg_job_wait(last, SG_FOREVER, nullptr));
  // It moves with the event, and the caller's handle stays the same.
  native_.hold();
  native_.record(native_event_.get());
  ASSERT_OK(sg_stream_wait_event(stream_, wrapper_));
  twice(in, out, stream_);
  ASSERT_OK(sg_event_record(event_, stream_));
  void *again = nullptr;
  EXPECT_OK(sg_event_native(event_, &again));
  EXPECT_EQ(given, again);
  second_native_.wait(given);
  second_native_.copy(seen, in);
  EXPECT_EQ(all(4), seen);
  native_.release();
  second_native_.finish();
  EXPECT_EQ(all(8), seen);
}

// Recording a wrapper records the caller's event, in streams of either kind.
TEST_F(native_events, the_callers_event_is_recorded) {
  stream over_native;
  ASSERT_OK(sg_stream_wrap(context_, native_.get(), over_native.out()));
  void *given = nullptr;
  ASSERT_OK(sg_event_native(wrapper_, &given));
  EXPECT_EQ(native_event_.get(), given);
  for (sg_stream *on : {stream_.get(), over_native.get()}) {
    const matrix first = all(1);
    matrix in = all(-1), out = all(-1), seen = all(-1);
    native_.hold();
    native_.copy(in, first);
    native_.record(native_event_.get());
    ASSERT_OK(sg_stream_wait_event(on, wrapper_));
    twice(out, in, on);
    ASSERT_OK(sg_event_record(wrapper_, on));
    second_native_.wait(native_event_.get());
    second_native_.copy(seen, out);
    EXPECT_STATUS(SG_STATUS_NOT_READY, native_event_.query());
    native_.release();
    second_native_.finish();
    EXPECT_EQ(all(2), seen);
    EXPECT_EQ(SG_STATUS_OK, native_event_.query());
    native_.finish();
  }
}

// All commands of a split GEMM are enqueued behind the native stream, which is held: no call waits on the host.
TEST_F(native_events, a_native_event_is_behind_work_of_several_commands) {
  const matrix first = all(1);
  matrix in = all(-1), out = all(-1), seen = all(-1);
  native_.hold();
  native_.copy(in, first);
  native_.record(native_event_.get());
  ASSERT_OK(sg_stream_wait_event(stream_, wrapper_));
  const sg_gemm_desc desc = doubling_.desc(out, in);
  sg_plan_options split = SG_PLAN_OPTIONS_INIT;
  split.split = SG_SPLIT_K;
  split.parts = 2;
  sg_submit options = SG_SUBMIT_INIT;
  options.stream = stream_;
  options.plan = &split;
  ASSERT_OK(sg_gemm_async(context_, &desc, &options, nullptr));
  ASSERT_OK(sg_event_record(event_, stream_));
  void *given = nullptr;
  ASSERT_OK(sg_event_native(event_, &given));
  second_native_.wait(given);
  second_native_.copy(seen, out);
  native_.release();
  second_native_.finish();
  EXPECT_EQ(all(2), seen);
}

TEST_F(native_events, invalid_events_are_refused) {
  int nothing = 0;
  event bad;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_event_wrap(context_, &nothing, bad.out()));
  EXPECT_EQ(nullptr, bad.get());
  double seconds = 1;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_event_elapsed(wrapper_, wrapper_, &seconds));
  EXPECT_EQ(0, seconds);
}

TEST_F(native_events, callbacks_run_for_the_callers_events) {
  native_.hold();
  native_.record(native_event_.get());
  std::atomic<bool> called = false;
  ASSERT_OK(sg_event_on_complete(
      wrapper_, [](sg_event *, sg_status, void *user) { *static_cast<std::atomic<bool> *>(user) = true; }, &called));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(called);
  native_.release();
  while (!called) std::this_thread::yield();
}

// Threads that pass a matrix back and forth between a stream of their own and one of the library's, ordered by events
// alone.
TEST_F(native_events, many_at_once) {
  constexpr int threads = 4, rounds = 100;
  std::vector<std::thread> all_threads;
  for (int t = 0; t < threads; ++t) {
    all_threads.emplace_back([&] {
      native_event reached;
      native_stream own;
      stream ours;
      event over_reached, completed;
      ASSERT_OK(sg_stream_create(context_, nullptr, ours.out()));
      ASSERT_OK(sg_event_wrap(context_, reached.get(), over_reached.out()));
      ASSERT_OK(sg_event_create(context_, completed.out()));
      void *native_completed = nullptr;
      ASSERT_OK(sg_event_native(completed, &native_completed));
      matrix x = all(1), y = all(-1), seen = all(-1);
      for (int i = 0; i < rounds; ++i) {
        x = all(i);
        own.copy(y, x);
        own.record(reached.get());
        EXPECT_OK(sg_stream_wait_event(ours, over_reached));
        twice(x, y, ours);
        EXPECT_OK(sg_event_record(completed, ours));
        own.wait(native_completed);
        own.copy(seen, x);
        own.finish();
        EXPECT_EQ(all(2 * i), seen);
      }
    });
  }
  for (std::thread &each : all_threads) each.join();
}

}  // namespace
}  // namespace sg_test
