// SPDX-License-Identifier: Apache-2.0
// Each wrong argument of each public function: its status, a message that names it and its value, outputs left NULL.
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "support/harness.hpp"

namespace sg_test {
namespace {

constexpr std::int64_t huge = std::int64_t{1} << 62;

struct wrong_call {
  const char *what;
  sg_status expected;
  std::vector<const char *> words;  // each of them is in the message
  std::function<sg_status()> call;
};

void check(const std::vector<wrong_call> &table) {
  for (const wrong_call &row : table) {
    const sg_status seen = row.call();
    const std::string message = sg_last_error_message();
    EXPECT_STREQ(sg_status_name(row.expected), sg_status_name(seen)) << row.what << ": " << message;
    if (seen != row.expected) continue;
    for (const char *word : row.words)
      EXPECT_NE(std::string::npos, message.find(word)) << row.what << ": '" << word << "' is not in: " << message;
  }
}

// A call with an output that must be NULL afterwards, whatever it was before.
template <class T, class Call>
std::function<sg_status()> nulls(Call call) {
  return [call] {
    T *out = reinterpret_cast<T *>(1);
    const sg_status status = call(&out);
    EXPECT_EQ(nullptr, out) << "an output handle after a failure";
    return status;
  };
}

class bad_input : public on_each_device {
 protected:
  void SetUp() override {
    on_each_device::SetUp();
    ASSERT_OK(sg_stream_acquire(context_, 0, stream_.out()));
    ASSERT_OK(sg_event_create(context_, event_.out()));
    ASSERT_OK(sg_buffer_create(context_, 4096, buffer_.out()));
    ASSERT_OK(sg_queue_create(context_, queue_.out()));
    const sg_gemm_desc desc = good();
    ASSERT_OK(sg_gemm_async(context_, &desc, nullptr, job_.out()));
    ASSERT_OK(sg_job_wait(job_, SG_FOREVER));
    sg_gemm_desc shape = good();
    shape.a.data = shape.b.data = shape.c.data = nullptr;
    ASSERT_OK(sg_plan_create(context_, &shape, nullptr, plan_.out()));
  }
  sg_gemm_desc good() { return product(a_, b_, c_, 2, 3, 4); }

  // The good product with one thing wrong, through every function that takes one.
  void check_desc(const char *what, sg_status expected, std::vector<const char *> words,
                  const std::function<void(sg_gemm_desc &)> &spoil) {
    sg_gemm_desc desc = good();
    spoil(desc);
    const std::vector<double> before(c_, c_ + 12);
    check({{what, expected, words,
            nulls<sg_job>([&](sg_job **out) { return sg_gemm_async(context_, &desc, nullptr, out); })},
           {what, expected, words, [&] { return sg_gemm(context_, &desc, nullptr); }},
           {what, expected, words,
            nulls<sg_job>([&](sg_job **out) { return sg_gemm_grouped_async(context_, &desc, 1, nullptr, out); })}});
    EXPECT_EQ(before, std::vector<double>(c_, c_ + 12)) << what << ": C was touched";
  }
  void check_submit(const char *what, sg_status expected, std::vector<const char *> words,
                    const std::function<void(sg_submit &)> &spoil) {
    sg_submit submit = SG_SUBMIT_INIT;
    spoil(submit);
    const sg_gemm_desc desc = good();
    check({{what, expected, words,
            nulls<sg_job>([&](sg_job **out) { return sg_gemm_async(context_, &desc, &submit, out); })},
           {what, expected, words, [&] { return sg_copy(context_, a_, b_, 8, &submit); }},
           {what, expected, words, nulls<sg_job>([&](sg_job **out) {
              return sg_dgemm_async(context_, SG_LAYOUT_ROW_MAJOR, SG_OP_N, SG_OP_N, 2, 3, 4, 1, a_, 4, b_, 3, 0, c_, 3,
                                    &submit, out);
            })}});
  }
  void check_plan(const char *what, sg_status expected, std::vector<const char *> words,
                  const std::function<void(sg_plan_options &)> &spoil) {
    sg_plan_options options = SG_PLAN_OPTIONS_INIT;
    spoil(options);
    const sg_gemm_desc desc = good();
    sg_submit submit = SG_SUBMIT_INIT;
    submit.plan = &options;
    check({{what, expected, words,
            nulls<sg_job>([&](sg_job **out) { return sg_gemm_async(context_, &desc, &submit, out); })},
           {what, expected, words,
            nulls<sg_plan>([&](sg_plan **out) { return sg_plan_create(context_, &desc, &options, out); })}});
  }

  double a_[12] = {}, b_[12] = {}, c_[12] = {};
  stream stream_;
  event event_;
  buffer buffer_;
  queue queue_;
  job job_;
  plan plan_;
};

constexpr sg_status argument = SG_STATUS_INVALID_ARGUMENT, handle = SG_STATUS_INVALID_HANDLE;

TEST_P(bad_input, outputs_that_are_null) {
  const sg_gemm_desc desc = good();
  sg_job *const jobs[] = {job_};
  sg_completion completion;
  std::int32_t count;
  check({
      {"backend count", argument, {"out_count"}, [] { return sg_backend_count(nullptr); }},
      {"device count", argument, {"out_count"}, [] { return sg_device_count(nullptr); }},
      {"backend describe", argument, {"out_info"}, [] { return sg_backend_describe(0, nullptr); }},
      {"device describe", argument, {"out_info"}, [] { return sg_device_describe(0, nullptr); }},
      {"context create", argument, {"out_context"}, [] { return sg_context_create(nullptr, nullptr); }},
      {"context device", argument, {"out_info"}, [&] { return sg_context_device(context_, nullptr); }},
      {"host alloc", argument, {"out_memory"}, [&] { return sg_host_alloc(context_, 8, nullptr); }},
      {"buffer create", argument, {"out_buffer"}, [&] { return sg_buffer_create(context_, 8, nullptr); }},
      {"buffer data", argument, {"out_data"}, [&] { return sg_buffer_data(buffer_, nullptr); }},
      {"buffer size", argument, {"out_bytes"}, [&] { return sg_buffer_size(buffer_, nullptr); }},
      {"stream acquire", argument, {"out_stream"}, [&] { return sg_stream_acquire(context_, 0, nullptr); }},
      {"stream wrap", argument, {"out_stream"}, [&] { return sg_stream_wrap(context_, a_, nullptr); }},
      {"stream priority", argument, {"out_priority"}, [&] { return sg_stream_priority(stream_, nullptr); }},
      {"event create", argument, {"out_event"}, [&] { return sg_event_create(context_, nullptr); }},
      {"event elapsed", argument, {"out_seconds"}, [&] { return sg_event_elapsed(event_, event_, nullptr); }},
      {"job stats", argument, {"out_statistics"}, [&] { return sg_job_stats(job_, nullptr); }},
      {"job message", argument, {"text"}, [&] { return sg_job_message(job_, nullptr, 10); }},
      {"wait any", argument, {"out_index"}, [&] { return sg_job_wait_any(jobs, 1, 0, nullptr); }},
      {"queue create", argument, {"out_queue"}, [&] { return sg_queue_create(context_, nullptr); }},
      {"queue next", argument, {"out_completions"}, [&] { return sg_queue_next_batch(queue_, nullptr, 1, 0, &count); }},
      {"queue count", argument, {"out_count"}, [&] { return sg_queue_next_batch(queue_, &completion, 1, 0, nullptr); }},
      {"queue fd", argument, {"out_fd"}, [&] { return sg_queue_fd(queue_, nullptr); }},
      {"plan create", argument, {"out_plan"}, [&] { return sg_plan_create(context_, &desc, nullptr, nullptr); }},
      {"plan predict", argument, {"out_prediction"}, [&] { return sg_plan_predict(plan_, nullptr); }},
      {"plan describe", argument, {"text"}, [&] { return sg_plan_describe(plan_, SG_PLAN_TEXT, nullptr, 10, nullptr); }},
  });
}

TEST_P(bad_input, contexts_and_devices) {
  std::int32_t backends = 0, devices = 0;
  ASSERT_OK(sg_backend_count(&backends));
  ASSERT_OK(sg_device_count(&devices));
  const auto create = [](const std::function<void(sg_context_options &)> &spoil) {
    return nulls<sg_context>([spoil](sg_context **out) {
      sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
      options.device = "cpu";
      spoil(options);
      return sg_context_create(&options, out);
    });
  };
  const auto named = [&](const char *name) { return create([name](sg_context_options &o) { o.device = name; }); };
  sg_backend_info backend = SG_BACKEND_INFO_INIT, unsized_backend = SG_BACKEND_INFO_INIT;
  sg_device_info device = SG_DEVICE_INFO_INIT, unsized_device = SG_DEVICE_INFO_INIT;
  unsized_backend.struct_size = unsized_device.struct_size = 0;
  const std::string long_name(100000, 'x'), long_sim = "sim:" + long_name;
  check({
      {"backend -1", argument, {"index", "-1"}, [&] { return sg_backend_describe(-1, &backend); }},
      {"backend count", argument, {"index"}, [&] { return sg_backend_describe(backends, &backend); }},
      {"backend without size", argument, {"struct_size"}, [&] { return sg_backend_describe(0, &unsized_backend); }},
      {"device -1", argument, {"index", "-1"}, [&] { return sg_device_describe(-1, &device); }},
      {"device count", argument, {"index"}, [&] { return sg_device_describe(devices, &device); }},
      {"device without size", argument, {"struct_size"}, [&] { return sg_device_describe(0, &unsized_device); }},
      {"options without size", argument, {"struct_size"}, create([](sg_context_options &o) { o.struct_size = 0; })},
      {"lanes", argument, {"compute_lanes", "-1"}, create([](sg_context_options &o) { o.compute_lanes = -1; })},
      {"lanes", argument, {"compute_lanes", "1000000"}, create([](sg_context_options &o) { o.compute_lanes = 1000000; })},
      {"staging", argument, {"staging_threads", "-7"}, create([](sg_context_options &o) { o.staging_threads = -7; })},
      {"staging", argument, {"staging_threads", "1000000"}, create([](sg_context_options &o) { o.staging_threads = 1000000; })},
      {"flags", argument, {"flags"}, create([](sg_context_options &o) { o.flags = 0x80000000u; })},
      {"reserved", argument, {"reserved"}, create([](sg_context_options &o) { o.reserved = 1; })},
      {"no backend of that name", SG_STATUS_NO_DEVICE, {"abacus"}, named("abacus:0")},
      {"no model of that name", SG_STATUS_NO_DEVICE, {"zx81"}, named("sim:zx81")},
      {"no such file", SG_STATUS_NO_DEVICE, {"/nonexistent/model.json"}, named("sim:/nonexistent/model.json")},
      {"a long name", SG_STATUS_INVALID_ARGUMENT, {}, named(long_name.c_str())},
      {"a long device", SG_STATUS_INVALID_ARGUMENT, {}, named(long_sim.c_str())},
      {"a nameless backend", SG_STATUS_NO_DEVICE, {":h200"}, named(":h200")},
  });
}

TEST_P(bad_input, handles_that_are_null) {
  const sg_gemm_desc desc = good();
  double seconds;
  std::int32_t number;
  std::uint64_t size;
  char text[8];
  sg_completion completion;
  sg_job *const none[] = {nullptr}, *const mixed[] = {job_, nullptr};
  sg_device_info info = SG_DEVICE_INFO_INIT;
  sg_job_statistics stats = SG_JOB_STATISTICS_INIT;
  sg_plan_prediction prediction = SG_PLAN_PREDICTION_INIT;
  const auto on_event = [](sg_event *, sg_status, void *) {};
  const auto on_job = [](sg_job *, sg_status, void *) {};
  check({
      {"", handle, {"context"}, [] { return sg_context_synchronize(nullptr); }},
      {"", handle, {"context"}, [&] { return sg_context_device(nullptr, &info); }},
      {"", handle, {"context"}, nulls<void>([](void **out) { return sg_host_alloc(nullptr, 8, out); })},
      {"", handle, {"context"}, [&] { return sg_host_free(nullptr, a_); }},
      {"", handle, {"context"}, [&] { return sg_host_register(nullptr, a_, 8); }},
      {"", handle, {"context"}, [&] { return sg_host_unregister(nullptr, a_); }},
      {"", handle, {"context"}, nulls<sg_buffer>([](sg_buffer **out) { return sg_buffer_create(nullptr, 8, out); })},
      {"", handle, {"buffer"}, nulls<void>([](void **out) { return sg_buffer_data(nullptr, out); })},
      {"", handle, {"buffer"}, [&] { return sg_buffer_size(nullptr, &size); }},
      {"", handle, {"context"}, nulls<sg_job>([&](sg_job **o) { return sg_copy_async(nullptr, a_, b_, 8, nullptr, o); })},
      {"", handle, {"context"},
       nulls<sg_job>([&](sg_job **o) { return sg_copy_2d_async(nullptr, a_, 8, b_, 8, 8, 1, nullptr, o); })},
      {"", handle, {"context"}, [&] { return sg_copy(nullptr, a_, b_, 8, nullptr); }},
      {"", handle, {"context"}, nulls<sg_stream>([](sg_stream **out) { return sg_stream_acquire(nullptr, 0, out); })},
      {"", handle, {"context"}, nulls<sg_stream>([&](sg_stream **out) { return sg_stream_wrap(nullptr, a_, out); })},
      {"", handle, {"stream"}, [&] { return sg_stream_priority(nullptr, &number); }},
      {"", handle, {"stream"}, [] { return sg_stream_query(nullptr); }},
      {"", handle, {"stream"}, [] { return sg_stream_synchronize(nullptr, 0); }},
      {"", handle, {"stream"}, [&] { return sg_stream_wait_event(nullptr, event_); }},
      {"", handle, {"event"}, [&] { return sg_stream_wait_event(stream_, nullptr); }},
      {"", handle, {"context"}, nulls<sg_event>([](sg_event **out) { return sg_event_create(nullptr, out); })},
      {"", handle, {"event"}, [&] { return sg_event_record(nullptr, stream_); }},
      {"", handle, {"stream"}, [&] { return sg_event_record(event_, nullptr); }},
      {"", handle, {"event"}, [] { return sg_event_query(nullptr); }},
      {"", handle, {"event"}, [] { return sg_event_wait(nullptr, 0); }},
      {"", handle, {"start"}, [&] { return sg_event_elapsed(nullptr, event_, &seconds); }},
      {"", handle, {"end"}, [&] { return sg_event_elapsed(event_, nullptr, &seconds); }},
      {"", handle, {"event"}, [&] { return sg_event_on_complete(nullptr, on_event, nullptr); }},
      {"", handle, {"context"}, nulls<sg_job>([&](sg_job **out) { return sg_gemm_async(nullptr, &desc, nullptr, out); })},
      {"", handle, {"context"}, [&] { return sg_gemm(nullptr, &desc, nullptr); }},
      {"", handle, {"context"},
       nulls<sg_job>([&](sg_job **out) { return sg_gemm_grouped_async(nullptr, &desc, 1, nullptr, out); })},
      {"", handle, {"job"}, [] { return sg_job_wait(nullptr, 0); }},
      {"", handle, {"job"}, [] { return sg_job_poll(nullptr); }},
      {"", handle, {"job"}, [] { return sg_job_cancel(nullptr); }},
      {"", handle, {"job"}, [&] { return sg_job_on_complete(nullptr, on_job, nullptr); }},
      {"", handle, {"job"}, [&] { return sg_job_message(nullptr, text, 8); }},
      {"", handle, {"job"}, [&] { return sg_job_stats(nullptr, &stats); }},
      {"", handle, {"jobs", "0"}, [&] { return sg_job_wait_all(none, 1, 0); }},
      {"", handle, {"jobs", "1"}, [&] { return sg_job_wait_all(mixed, 2, 0); }},
      {"", handle, {"jobs", "1"},
       [&] {
         number = 7;
         const sg_status status = sg_job_wait_any(mixed, 2, 0, &number);
         EXPECT_EQ(-1, number);
         return status;
       }},
      {"", handle, {"context"}, nulls<sg_queue>([](sg_queue **out) { return sg_queue_create(nullptr, out); })},
      {"", handle, {"queue"}, [&] { return sg_queue_next_batch(nullptr, &completion, 1, 0, &number); }},
      {"", handle, {"queue"}, [] { return sg_queue_close(nullptr); }},
      {"", handle, {"queue"},
       [&] {
         number = 7;
         const sg_status status = sg_queue_fd(nullptr, &number);
         EXPECT_EQ(-1, number);
         return status;
       }},
      {"", handle, {"context"}, nulls<sg_plan>([&](sg_plan **out) { return sg_plan_create(nullptr, &desc, nullptr, out); })},
      {"", handle, {"plan"}, [&] { return sg_plan_predict(nullptr, &prediction); }},
      {"", handle, {"plan"}, [] { return sg_plan_describe(nullptr, SG_PLAN_TEXT, nullptr, 0, nullptr); }},
      {"", handle, {"plan"}, nulls<sg_job>([&](sg_job **out) { return sg_plan_run_async(nullptr, &desc, nullptr, out); })},
  });
}

TEST_P(bad_input, memory_and_copies) {
  const auto copy_2d = [&](void *dst, std::uint64_t dst_pitch, const void *src, std::uint64_t src_pitch,
                           std::uint64_t width, std::uint64_t height) {
    return nulls<sg_job>([=, this](sg_job **out) {
      return sg_copy_2d_async(context_, dst, dst_pitch, src, src_pitch, width, height, nullptr, out);
    });
  };
  check({
      {"no bytes", argument, {"bytes", "0"}, nulls<sg_buffer>([&](sg_buffer **out) { return sg_buffer_create(context_, 0, out); })},
      {"all bytes", SG_STATUS_OUT_OF_MEMORY, {}, nulls<void>([&](void **out) { return sg_host_alloc(context_, UINT64_MAX, out); })},
      {"not allocated here", argument, {"memory"}, [&] { return sg_host_free(context_, a_); }},
      {"nowhere", argument, {"memory"}, [&] { return sg_host_register(context_, nullptr, 8); }},
      {"nothing", argument, {"bytes", "0"}, [&] { return sg_host_register(context_, a_, 0); }},
      {"to the end of the world", argument, {"bytes"}, [&] { return sg_host_register(context_, a_, UINT64_MAX); }},
      {"not registered", argument, {"memory"}, [&] { return sg_host_unregister(context_, a_); }},
      {"nowhere", argument, {"dst"}, nulls<sg_job>([&](sg_job **o) { return sg_copy_async(context_, nullptr, a_, 8, nullptr, o); })},
      {"from nowhere", argument, {"src"}, nulls<sg_job>([&](sg_job **o) { return sg_copy_async(context_, a_, nullptr, 8, nullptr, o); })},
      {"too many", argument, {"bytes"}, nulls<sg_job>([&](sg_job **o) { return sg_copy_async(context_, a_, b_, UINT64_MAX, nullptr, o); })},
      {"overlap", argument, {"overlap"}, nulls<sg_job>([&](sg_job **o) { return sg_copy_async(context_, a_, a_ + 1, 16, nullptr, o); })},
      {"2d nowhere", argument, {"dst"}, copy_2d(nullptr, 8, a_, 8, 8, 2)},
      {"2d from nowhere", argument, {"src"}, copy_2d(a_, 8, nullptr, 8, 8, 2)},
      {"dst_pitch", argument, {"dst_pitch", "7"}, copy_2d(a_, 7, b_, 8, 8, 2)},
      {"src_pitch", argument, {"src_pitch", "7"}, copy_2d(a_, 8, b_, 7, 8, 2)},
      {"2d overflow", argument, {}, copy_2d(a_, std::uint64_t{1} << 40, b_, std::uint64_t{1} << 40, 8, std::uint64_t{1} << 40)},
      {"2d overlap", argument, {"overlap"}, copy_2d(a_, 16, a_ + 2, 16, 8, 3)},
  });
}

TEST_P(bad_input, streams_events_jobs_queues) {
  sg_job *const jobs[] = {job_};
  sg_completion completions[2];
  std::int32_t number;
  sg_job_statistics unsized = SG_JOB_STATISTICS_INIT;
  unsized.struct_size = 0;
  char text[8];
  check({
      {"", argument, {"priority", "2"}, nulls<sg_stream>([&](sg_stream **out) { return sg_stream_acquire(context_, 2, out); })},
      {"", argument, {"priority", "-2"}, nulls<sg_stream>([&](sg_stream **out) { return sg_stream_acquire(context_, -2, out); })},
      {"", argument, {"timeout_ns", "-2"}, [&] { return sg_stream_synchronize(stream_, -2); }},
      {"", argument, {"timeout_ns", "-2"}, [&] { return sg_event_wait(event_, -2); }},
      {"", argument, {"callback"}, [&] { return sg_event_on_complete(event_, nullptr, nullptr); }},
      {"", argument, {"timeout_ns", "-2"}, [&] { return sg_job_wait(job_, -2); }},
      {"", argument, {"callback"}, [&] { return sg_job_on_complete(job_, nullptr, nullptr); }},
      {"", argument, {"size", "0"}, [&] { return sg_job_message(job_, text, 0); }},
      {"", argument, {"struct_size"}, [&] { return sg_job_stats(job_, &unsized); }},
      {"", argument, {"count", "-1"}, [&] { return sg_job_wait_all(jobs, -1, 0); }},
      {"", argument, {"jobs"}, [&] { return sg_job_wait_all(nullptr, 1, 0); }},
      {"", argument, {"timeout_ns", "-5"}, [&] { return sg_job_wait_all(jobs, 1, -5); }},
      {"", argument, {"count", "0"}, [&] { return sg_job_wait_any(jobs, 0, 0, &number); }},
      {"", argument, {"jobs"}, [&] { return sg_job_wait_any(nullptr, 1, 0, &number); }},
      {"", argument, {"timeout_ns", "-5"}, [&] { return sg_job_wait_any(jobs, 1, -5, &number); }},
      {"", argument, {"capacity", "0"}, [&] { return sg_queue_next_batch(queue_, completions, 0, 0, &number); }},
      {"", argument, {"capacity", "-3"}, [&] { return sg_queue_next_batch(queue_, completions, -3, 0, &number); }},
      {"", argument, {"timeout_ns", "-2"}, [&] { return sg_queue_next_batch(queue_, completions, 1, -2, &number); }},
  });
}

TEST_P(bad_input, products) {
  check({{"no desc", argument, {"desc"}, nulls<sg_job>([&](sg_job **out) { return sg_gemm_async(context_, nullptr, nullptr, out); })},
         {"no desc", argument, {"desc"}, [&] { return sg_gemm(context_, nullptr, nullptr); }},
         {"no descs", argument, {"descs"}, nulls<sg_job>([&](sg_job **o) { return sg_gemm_grouped_async(context_, nullptr, 1, nullptr, o); })},
         {"no desc", argument, {"desc"}, nulls<sg_plan>([&](sg_plan **out) { return sg_plan_create(context_, nullptr, nullptr, out); })},
         {"no desc", argument, {"desc"}, nulls<sg_job>([&](sg_job **out) { return sg_plan_run_async(plan_, nullptr, nullptr, out); })}});
  const sg_gemm_desc desc = good();
  for (const std::int32_t count : {0, -4})
    check({{"count", argument, {"count"}, nulls<sg_job>([&](sg_job **o) { return sg_gemm_grouped_async(context_, &desc, count, nullptr, o); })}});

  using d = sg_gemm_desc &;
  check_desc("struct_size", argument, {"struct_size"}, [](d x) { x.struct_size = 0; });
  check_desc("a.data", argument, {"a.data"}, [](d x) { x.a.data = nullptr; });
  check_desc("b.data", argument, {"b.data"}, [](d x) { x.b.data = nullptr; });
  check_desc("c.data", argument, {"c.data"}, [](d x) { x.c.data = nullptr; });
  check_desc("a.rows", argument, {"->a", "-1"}, [](d x) { x.a.rows = -1; });
  check_desc("a.cols", argument, {"->a", "-2"}, [](d x) { x.a.cols = -2; });
  check_desc("b.rows", argument, {"->b", "-3"}, [](d x) { x.b.rows = -3; });
  check_desc("c.cols", argument, {"->c", "-4"}, [](d x) { x.c.cols = -4; });
  check_desc("m", argument, {"2", "5"}, [](d x) { x.c.rows = 5; });
  check_desc("n", argument, {"3", "9"}, [](d x) { x.c.cols = 9; });
  check_desc("k", argument, {"4", "7"}, [](d x) { x.b.rows = 7; });
  check_desc("the op changes the sizes", argument, {}, [](d x) { x.op_a = SG_OP_T; });
  check_desc("a.ld", argument, {"a.ld", "3"}, [](d x) { x.a.ld = 3; });
  check_desc("b.ld", argument, {"b.ld", "-3"}, [](d x) { x.b.ld = -3; });
  check_desc("c.ld", argument, {"c.ld", "2"}, [](d x) { x.c.ld = 2; });
  check_desc("a.ld by columns", argument, {"a.ld", "1"}, [](d x) { x.a.layout = SG_LAYOUT_COLUMN_MAJOR, x.a.ld = 1; });
  check_desc("a.dtype", argument, {"a.dtype", "0"}, [](d x) { x.a.dtype = static_cast<sg_dtype>(0); });
  check_desc("b.dtype", argument, {"b.dtype", "99"}, [](d x) { x.b.dtype = static_cast<sg_dtype>(99); });
  check_desc("c.dtype", argument, {"c.dtype", "-1"}, [](d x) { x.c.dtype = static_cast<sg_dtype>(-1); });
  check_desc("a.layout", argument, {"a.layout", "2"}, [](d x) { x.a.layout = static_cast<sg_layout>(2); });
  check_desc("c.layout", argument, {"c.layout", "-1"}, [](d x) { x.c.layout = static_cast<sg_layout>(-1); });
  check_desc("op_a", argument, {"op_a", "3"}, [](d x) { x.op_a = static_cast<sg_op>(3); });
  check_desc("op_b", argument, {"op_b", "-1"}, [](d x) { x.op_b = static_cast<sg_op>(-1); });
  check_desc("compute", argument, {"compute", "5"}, [](d x) { x.compute = static_cast<sg_compute>(5); });
  check_desc("reserved", argument, {"reserved"}, [](d x) { x.reserved = 1; });
  check_desc("types of a and b", argument, {"f64", "f32"}, [](d x) { x.b.dtype = SG_DTYPE_F32; });
  check_desc("type of c", argument, {"f64", "f32"}, [](d x) { x.c.dtype = SG_DTYPE_F32; });
  check_desc("i32 operands", argument, {"i32"}, [](d x) { x.a.dtype = x.b.dtype = x.c.dtype = SG_DTYPE_I32; });
  check_desc("i8 result", argument, {"i8"}, [](d x) { x.a.dtype = x.b.dtype = x.c.dtype = SG_DTYPE_I8; });
  check_desc("half an alpha for integers", argument, {"alpha", "0.5"}, [](d x) {
    x.a.dtype = x.b.dtype = SG_DTYPE_I8;
    x.c.dtype = SG_DTYPE_I32;
    x.alpha.re = 0.5;
  });
  check_desc("a beta beyond integers", argument, {"beta"}, [](d x) {
    x.a.dtype = x.b.dtype = SG_DTYPE_I8;
    x.c.dtype = SG_DTYPE_I32;
    x.beta.re = std::numeric_limits<double>::quiet_NaN();
  });
  check_desc("unaligned", argument, {"a.data"}, [](d x) { x.a.data = static_cast<char *>(x.a.data) + 1; });
  check_desc("batch", argument, {"batch", "-1"}, [](d x) { x.batch = -1; });
  check_desc("stride_a", argument, {"stride_a", "-1"}, [](d x) { x.batch = 2, x.stride_a = -1, x.stride_c = 100; });
  check_desc("items of c overlap", argument, {"stride_c", "5"}, [](d x) { x.batch = 2, x.stride_c = 5; });
  check_desc("items of c in one place", argument, {"stride_c", "0"}, [](d x) { x.batch = 2; });
  check_desc("rows overflow", argument, {}, [](d x) { x.a.rows = x.c.rows = huge; });
  check_desc("ld overflows", argument, {"->a"}, [](d x) { x.a.ld = huge; });
  check_desc("batch overflows", argument, {}, [](d x) { x.batch = huge, x.stride_c = 6; });
  check_desc("stride overflows", argument, {"c"}, [](d x) { x.batch = 3, x.stride_c = huge; });
  check_desc("c is a", argument, {"overlap"}, [this](d x) { x.c.data = a_; });
  check_desc("c begins inside b", argument, {"overlap"}, [this](d x) { x.c.data = b_ + 11; });
  check_desc("a begins inside c", argument, {"overlap"}, [this](d x) { x.a.data = c_ + 5; });
}

TEST_P(bad_input, pointer_arrays) {
  void *a[] = {a_, a_}, *b[] = {b_, b_}, *c[] = {c_, c_ + 6}, *hole[] = {a_, nullptr}, *same[] = {c_, c_},
       *crossed[] = {c_, a_ + 4};
  using d = sg_gemm_desc &;
  const auto arrays = [&](d x) {
    x.batch = 2;
    x.a_array = a;
    x.b_array = b;
    x.c_array = c;
  };
  check_desc("a hole in a", argument, {"a_array", "1"}, [&](d x) { arrays(x), x.a_array = hole; });
  check_desc("a hole in c", argument, {"c_array", "1"}, [&](d x) { arrays(x), x.c_array = hole; });
  check_desc("items of c in one place", argument, {"overlap"}, [&](d x) { arrays(x), x.c_array = same; });
  check_desc("an item of c inside a", argument, {"overlap"}, [&](d x) { arrays(x), x.c_array = crossed; });
}

TEST_P(bad_input, blas_shaped_calls) {
  struct arguments {
    sg_layout layout = SG_LAYOUT_ROW_MAJOR;
    sg_op op_a = SG_OP_N, op_b = SG_OP_N;
    std::int64_t m = 2, n = 3, k = 4, lda = 4, ldb = 3, ldc = 3;
  };
  const auto check_both = [&](std::vector<const char *> words, const std::function<void(arguments &)> &spoil) {
    arguments x;
    spoil(x);
    auto *a = reinterpret_cast<float *>(a_), *b = reinterpret_cast<float *>(b_), *c = reinterpret_cast<float *>(c_);
    check({{"dgemm", argument, words, nulls<sg_job>([&](sg_job **out) {
              return sg_dgemm_async(context_, x.layout, x.op_a, x.op_b, x.m, x.n, x.k, 1, a_, x.lda, b_, x.ldb, 0, c_,
                                    x.ldc, nullptr, out);
            })},
           {"sgemm", argument, words, nulls<sg_job>([&](sg_job **out) {
              return sg_sgemm_async(context_, x.layout, x.op_a, x.op_b, x.m, x.n, x.k, 1, a, x.lda, b, x.ldb, 0, c,
                                    x.ldc, nullptr, out);
            })}});
  };
  using a = arguments &;
  check_both({"layout", "2"}, [](a x) { x.layout = static_cast<sg_layout>(2); });
  check_both({"op_a", "7"}, [](a x) { x.op_a = static_cast<sg_op>(7); });
  check_both({"op_b", "7"}, [](a x) { x.op_b = static_cast<sg_op>(7); });
  check_both({"m", "-1"}, [](a x) { x.m = -1; });
  check_both({"n", "-1"}, [](a x) { x.n = -1; });
  check_both({"k", "-1"}, [](a x) { x.k = -1; });
  check_both({"lda", "0"}, [](a x) { x.lda = 0; });
  check_both({"lda", "3"}, [](a x) { x.lda = 3; });
  check_both({"ldb", "2"}, [](a x) { x.ldb = 2; });
  check_both({"ldc", "-9"}, [](a x) { x.ldc = -9; });
  check_both({"lda", "1"}, [](a x) { x.layout = SG_LAYOUT_COLUMN_MAJOR, x.lda = 1, x.ldb = 4, x.ldc = 2; });
  check_both({"lda", "1"}, [](a x) { x.op_a = SG_OP_T, x.lda = 1; });
}

TEST_P(bad_input, options_of_a_submission) {
  const context other = open_context(GetParam());
  stream foreign;
  ASSERT_OK(sg_stream_acquire(other, 0, foreign.out()));
  sg_job *const none[] = {job_, nullptr};
  using s = sg_submit &;
  check_submit("struct_size", argument, {"struct_size"}, [](s x) { x.struct_size = 0; });
  check_submit("stream", handle, {"stream"}, [this](s x) { x.stream = reinterpret_cast<sg_stream *>(event_.get()); });
  check_submit("another context's stream", argument, {"stream"}, [&](s x) { x.stream = foreign; });
  check_submit("after_count", argument, {"after_count", "-1"}, [&](s x) { x.after_count = -1; });
  check_submit("after", argument, {"after"}, [&](s x) { x.after_count = 1; });
  check_submit("a hole in after", handle, {"after", "1"}, [&](s x) { x.after = none, x.after_count = 2; });
  check_submit("priority", argument, {"priority", "2"}, [](s x) { x.priority = 2; });
  check_submit("priority", argument, {"priority", "-2"}, [](s x) { x.priority = -2; });
  check_submit("flags", argument, {"flags"}, [](s x) { x.flags = 2; });
  check_submit("reserved", argument, {"reserved"}, [](s x) { x.reserved = 1; });
  check_submit("queue", handle, {"queue"}, [this](s x) { x.queue = reinterpret_cast<sg_queue *>(job_.get()); });
}

TEST_P(bad_input, options_of_a_plan) {
  using p = sg_plan_options &;
  check_plan("struct_size", argument, {"struct_size"}, [](p x) { x.struct_size = 0; });
  check_plan("split", argument, {"split", "6"}, [](p x) { x.split = static_cast<sg_split>(6); });
  check_plan("split", argument, {"split"}, [](p x) { x.split = static_cast<sg_split>(-1); });
  check_plan("parts", argument, {"parts", "-1"}, [](p x) { x.parts = -1; });
  check_plan("streams", argument, {"streams", "-1"}, [](p x) { x.streams = -1; });
  check_plan("tile_m", argument, {"tile_m", "-1"}, [](p x) { x.tile_m = -1; });
  check_plan("tile_n", argument, {"tile_n", "-2"}, [](p x) { x.tile_n = -2; });
  check_plan("tile_k", argument, {"tile_k", "-3"}, [](p x) { x.tile_k = -3; });
  check_plan("place_a", argument, {"place_a", "4"}, [](p x) { x.place_a = static_cast<sg_memory_kind>(4); });
  check_plan("place_b", argument, {"place_b"}, [](p x) { x.place_b = static_cast<sg_memory_kind>(-1); });
  check_plan("place_c", argument, {"place_c", "9"}, [](p x) { x.place_c = static_cast<sg_memory_kind>(9); });
  check_plan("a batch split without a batch", SG_STATUS_UNSUPPORTED, {"split"}, [](p x) { x.split = SG_SPLIT_BATCH, x.parts = 2; });
  sg_plan_prediction unsized = SG_PLAN_PREDICTION_INIT;
  unsized.struct_size = 0;
  check({{"struct_size", argument, {"struct_size"}, [&] { return sg_plan_predict(plan_, &unsized); }},
         {"format", argument, {"format", "3"},
          [&] { return sg_plan_describe(plan_, static_cast<sg_plan_format>(3), nullptr, 0, nullptr); }}});
}

ON_EACH_DEVICE(bad_input);

// What the variable and a name may hold, and that what they hold is printed with care.
TEST(device_names, hostile_values) {
  const auto open = [](const char *name) {
    sg_context *out = reinterpret_cast<sg_context *>(1);
    sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
    options.device = name;
    const sg_status status = sg_context_create(&options, &out);
    EXPECT_EQ(nullptr, out);
    for (const char *c = sg_last_error_message(); *c; ++c) EXPECT_GE(static_cast<unsigned char>(*c), 32) << name;
    return status;
  };
  const std::string endless(1000000, 'a');
  for (const char *name : {"\033[2Jsim", "sim:\n\r\a", "cpu\001", "sim:h200?fail-alloc=x", "sim:h200?nonsense=1",
                           "sim:h200?fail-copy=-1", "sim:h200?memory=99999999999999999999GiB", "%s%n%s%n", "sim:/dev/null",
                           "sim:/etc", "cpu:1", "sim:../../etc/passwd", endless.c_str()}) {
    const sg_status direct = open(name);
    EXPECT_TRUE(direct == SG_STATUS_INVALID_ARGUMENT || direct == SG_STATUS_NO_DEVICE) << sg_status_name(direct) << name;
    ASSERT_EQ(0, setenv("SG_DEVICE", name, 1));
    const sg_status by_variable = open("auto");
    EXPECT_TRUE(by_variable == SG_STATUS_INVALID_ARGUMENT || by_variable == SG_STATUS_NO_DEVICE)
        << sg_status_name(by_variable) << name;
  }
  setenv("SG_DEVICE", "sim:h200", 1);
  const context chosen = open_context("auto");
  sg_device_info info = SG_DEVICE_INFO_INIT;
  EXPECT_OK(sg_context_device(chosen, &info));
  EXPECT_STREQ("sim:h200", info.name);
  unsetenv("SG_DEVICE");
}

}  // namespace
}  // namespace sg_test
