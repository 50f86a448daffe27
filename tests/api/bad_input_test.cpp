// SPDX-License-Identifier: Apache-2.0
// Each wrong argument of each public function, except GEMM descriptors: bad_gemm_test.cpp.
#include "support/gemm_plan.h"
#include "support/wrong_calls.hpp"

namespace sg_test {
namespace {

TEST_P(bad_input, outputs_that_are_null) {
  const sg_gemm_desc desc = good();
  sg_job *const jobs[] = {job_};
  sg_completion completion;
  std::int32_t count;
  check({
      {"backend count", argument, {"out_count"}, [] { return sg_backend_count(nullptr); }},
      {"device count", argument, {"out_count"}, [] { return sg_device_count(nullptr); }},
      {"backend describe", argument, {"out_info"}, [] { return sg_backend_get_info(0, nullptr); }},
      {"device describe", argument, {"out_info"}, [] { return sg_device_get_info(0, nullptr); }},
      {"context create", argument, {"out_context"}, [] { return sg_context_create(nullptr, nullptr); }},
      {"context device", argument, {"out_info"}, [&] { return sg_context_get_device_info(context_, 0, nullptr); }},
      {"host alloc", argument, {"out_memory"}, [&] { return sg_host_alloc(context_, 8, nullptr); }},
      {"buffer create", argument, {"out_buffer"}, [&] { return sg_buffer_create(context_, 8, nullptr, nullptr); }},
      {"buffer data", argument, {"out_data"}, [&] { return sg_buffer_data(buffer_, nullptr); }},
      {"buffer size", argument, {"out_bytes"}, [&] { return sg_buffer_size(buffer_, nullptr); }},
      {"stream acquire", argument, {"out_stream"}, [&] { return sg_stream_create(context_, nullptr, nullptr); }},
      {"stream wrap", argument, {"out_stream"}, [&] { return sg_stream_wrap(context_, a_, nullptr); }},
      {"stream priority", argument, {"out_priority"}, [&] { return sg_stream_priority(stream_, nullptr); }},
      {"event create", argument, {"out_event"}, [&] { return sg_event_create(context_, nullptr); }},
      {"event wrap", argument, {"out_event"}, [&] { return sg_event_wrap(context_, a_, nullptr); }},
      {"event native", argument, {"out_native"}, [&] { return sg_event_native(event_, nullptr); }},
      {"event elapsed", argument, {"out_seconds"}, [&] { return sg_event_elapsed(event_, event_, nullptr); }},
      {"job stats", argument, {"out_statistics"}, [&] { return sg_job_get_statistics(job_, nullptr); }},
      {"job message", argument, {"text"}, [&] { return sg_job_message(job_, nullptr, 10, nullptr); }},
      {"job label", argument, {"text"}, [&] { return sg_job_label(job_, nullptr, 10, nullptr); }},
      {"wait any", argument, {"out_index"}, [&] { return sg_job_wait_any(jobs, 1, 0, nullptr, nullptr); }},
      {"queue create", argument, {"out_queue"}, [&] { return sg_queue_create(context_, nullptr, nullptr); }},
      {"shared queue create", argument, {"out_queue"}, [&] { return sg_queue_create(nullptr, nullptr, nullptr); }},
      {"queue next",
       argument,
       {"out_completions"},
       [&] { return sg_queue_next_batch(queue_, nullptr, sizeof(sg_completion), 1, 0, &count); }},
      {"queue count",
       argument,
       {"out_count"},
       [&] { return sg_queue_next_batch(queue_, &completion, sizeof(sg_completion), 1, 0, nullptr); }},
      {"queue fd", argument, {"out_fd"}, [&] { return sg_queue_fd(queue_, nullptr); }},
      {"plan create", argument, {"out_plan"}, [&] { return create_gemm_plan(context_, &desc, nullptr, nullptr); }},
      {"plan predict", argument, {"out_prediction"}, [&] { return sg_plan_get_prediction(plan_, nullptr); }},
      {"plan describe",
       argument,
       {"text"},
       [&] { return sg_plan_describe(plan_, SG_PLAN_FORMAT_TEXT, nullptr, 10, nullptr); }},
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
      {"backend -1", argument, {"index", "-1"}, [&] { return sg_backend_get_info(-1, &backend); }},
      {"backend count", argument, {"index"}, [&] { return sg_backend_get_info(backends, &backend); }},
      {"no plugin", argument, {"path is NULL"}, [&] { return sg_backend_load(nullptr); }},
      {"relative plugin", argument, {"path", "\"x.so\"", "absolute"}, [&] { return sg_backend_load("x.so"); }},
      {"absent plugin",
       SG_STATUS_NO_DEVICE,
       {"path", "/nonexistent.so"},
       [&] { return sg_backend_load("/nonexistent.so"); }},
      {"backend without size", argument, {"struct_size"}, [&] { return sg_backend_get_info(0, &unsized_backend); }},
      {"device -1", argument, {"index", "-1"}, [&] { return sg_device_get_info(-1, &device); }},
      {"device count", argument, {"index"}, [&] { return sg_device_get_info(devices, &device); }},
      {"device without size", argument, {"struct_size"}, [&] { return sg_device_get_info(0, &unsized_device); }},
      {"options without size", argument, {"struct_size"}, create([](sg_context_options &o) { o.struct_size = 0; })},
      {"lanes", argument, {"compute_lanes", "-1"}, create([](sg_context_options &o) { o.compute_lanes = -1; })},
      {"lanes", argument, {"compute_lanes", "1000000"}, create([](sg_context_options &o) {
         o.compute_lanes = 1000000;
       })},
      {"staging", argument, {"staging_threads", "-7"}, create([](sg_context_options &o) { o.staging_threads = -7; })},
      {"staging", argument, {"staging_threads", "1000000"}, create([](sg_context_options &o) {
         o.staging_threads = 1000000;
       })},
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
      {"", handle, {"context"}, [] { return sg_context_synchronize(nullptr, SG_FOREVER); }},
      {"", handle, {"context"}, [&] { return sg_context_get_device_info(nullptr, 0, &info); }},
      {"", handle, {"context"}, nulls<void>([](void **out) { return sg_host_alloc(nullptr, 8, out); })},
      {"", handle, {"context"}, [&] { return sg_host_free(nullptr, a_); }},
      {"", handle, {"context"}, [&] { return sg_host_register(nullptr, a_, 8); }},
      {"", handle, {"context"}, [&] { return sg_host_unregister(nullptr, a_); }},
      {"", handle, {"context"}, nulls<sg_buffer>([](sg_buffer **out) {
         return sg_buffer_create(nullptr, 8, nullptr, out);
       })},
      {"", handle, {"buffer"}, nulls<void>([](void **out) { return sg_buffer_data(nullptr, out); })},
      {"", handle, {"buffer"}, [&] { return sg_buffer_size(nullptr, &size); }},
      {"", handle, {"context"}, nulls<sg_job>([&](sg_job **o) {
         return sg_copy_async(nullptr, a_, b_, 8, nullptr, o);
       })},
      {"", handle, {"context"}, nulls<sg_job>([&](sg_job **o) {
         return sg_copy_2d_async(nullptr, a_, 8, b_, 8, 8, 1, nullptr, o);
       })},
      {"", handle, {"context"}, [&] { return sg_copy(nullptr, a_, b_, 8, nullptr); }},
      {"", handle, {"context"}, nulls<sg_stream>([](sg_stream **out) {
         return sg_stream_create(nullptr, nullptr, out);
       })},
      {"", handle, {"context"}, nulls<sg_stream>([&](sg_stream **out) { return sg_stream_wrap(nullptr, a_, out); })},
      {"", handle, {"stream"}, [&] { return sg_stream_priority(nullptr, &number); }},
      {"", handle, {"stream"}, [] { return sg_stream_query(nullptr); }},
      {"", handle, {"stream"}, [] { return sg_stream_synchronize(nullptr, 0); }},
      {"", handle, {"stream"}, [&] { return sg_stream_wait_event(nullptr, event_); }},
      {"", handle, {"event"}, [&] { return sg_stream_wait_event(stream_, nullptr); }},
      {"", handle, {"context"}, nulls<sg_event>([](sg_event **out) { return sg_event_create(nullptr, out); })},
      {"", handle, {"context"}, nulls<sg_event>([&](sg_event **out) { return sg_event_wrap(nullptr, a_, out); })},
      {"", argument, {"native"}, nulls<sg_event>([&](sg_event **o) { return sg_event_wrap(context_, nullptr, o); })},
      {"", handle, {"event"}, nulls<void>([](void **out) { return sg_event_native(nullptr, out); })},
      {"", handle, {"event"}, [&] { return sg_event_record(nullptr, stream_); }},
      {"", handle, {"stream"}, [&] { return sg_event_record(event_, nullptr); }},
      {"", handle, {"event"}, [] { return sg_event_query(nullptr); }},
      {"", handle, {"event"}, [] { return sg_event_wait(nullptr, 0); }},
      {"", handle, {"start"}, [&] { return sg_event_elapsed(nullptr, event_, &seconds); }},
      {"", handle, {"end"}, [&] { return sg_event_elapsed(event_, nullptr, &seconds); }},
      {"", handle, {"event"}, [&] { return sg_event_on_complete(nullptr, on_event, nullptr); }},
      {"", handle, {"context"}, nulls<sg_job>([&](sg_job **out) {
         return sg_gemm_async(nullptr, &desc, nullptr, out);
       })},
      {"", handle, {"context"}, [&] { return sg_gemm(nullptr, &desc, nullptr); }},
      {"", handle, {"context"}, nulls<sg_job>([&](sg_job **out) {
         return sg_gemm_grouped_async(nullptr, &desc, 1, nullptr, out);
       })},
      {"", handle, {"job"}, [] { return sg_job_wait(nullptr, 0, nullptr); }},
      {"", handle, {"job"}, [] { return sg_job_query(nullptr, nullptr); }},
      {"", handle, {"job"}, [] { return sg_job_cancel(nullptr); }},
      {"", handle, {"job"}, [&] { return sg_job_on_complete(nullptr, on_job, nullptr); }},
      {"", handle, {"job"}, [&] { return sg_job_message(nullptr, text, 8, nullptr); }},
      {"", handle, {"job"}, [&] { return sg_job_label(nullptr, text, 8, nullptr); }},
      {"", handle, {"job"}, [&] { return sg_job_get_statistics(nullptr, &stats); }},
      {"", handle, {"jobs", "0"}, [&] { return sg_job_wait_all(none, 1, 0, nullptr); }},
      {"", handle, {"jobs", "1"}, [&] { return sg_job_wait_all(mixed, 2, 0, nullptr); }},
      {"",
       handle,
       {"jobs", "1"},
       [&] {
         number = 7;
         const sg_status status = sg_job_wait_any(mixed, 2, 0, &number, nullptr);
         EXPECT_EQ(-1, number);
         return status;
       }},
      {"",
       handle,
       {"queue"},
       [&] { return sg_queue_next_batch(nullptr, &completion, sizeof(sg_completion), 1, 0, &number); }},
      {"", handle, {"queue"}, [] { return sg_queue_close(nullptr); }},
      {"",
       handle,
       {"queue"},
       [&] {
         number = 7;
         const sg_status status = sg_queue_fd(nullptr, &number);
         EXPECT_EQ(-1, number);
         return status;
       }},
      {"", handle, {"context"}, nulls<sg_plan>([&](sg_plan **out) {
         return create_gemm_plan(nullptr, &desc, nullptr, out);
       })},
      {"", handle, {"plan"}, [&] { return sg_plan_get_prediction(nullptr, &prediction); }},
      {"", handle, {"plan"}, [] { return sg_plan_describe(nullptr, SG_PLAN_FORMAT_TEXT, nullptr, 0, nullptr); }},
      {"", handle, {"plan"}, nulls<sg_job>([&](sg_job **out) { return run_gemm_plan(nullptr, &desc, nullptr, out); })},
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
      {"no bytes", argument, {"bytes", "0"}, nulls<sg_buffer>([&](sg_buffer **out) {
         return sg_buffer_create(context_, 0, nullptr, out);
       })},
      {"all bytes", SG_STATUS_OUT_OF_MEMORY, {}, nulls<void>([&](void **out) {
         return sg_host_alloc(context_, UINT64_MAX, out);
       })},
      {"not allocated here", argument, {"memory"}, [&] { return sg_host_free(context_, a_); }},
      {"nowhere", argument, {"memory"}, [&] { return sg_host_register(context_, nullptr, 8); }},
      {"nothing", argument, {"bytes", "0"}, [&] { return sg_host_register(context_, a_, 0); }},
      {"to the end of the world", argument, {"bytes"}, [&] { return sg_host_register(context_, a_, UINT64_MAX); }},
      {"not registered", argument, {"memory"}, [&] { return sg_host_unregister(context_, a_); }},
      {"nowhere", argument, {"dst"}, nulls<sg_job>([&](sg_job **o) {
         return sg_copy_async(context_, nullptr, a_, 8, nullptr, o);
       })},
      {"from nowhere", argument, {"src"}, nulls<sg_job>([&](sg_job **o) {
         return sg_copy_async(context_, a_, nullptr, 8, nullptr, o);
       })},
      {"too many", argument, {"bytes"}, nulls<sg_job>([&](sg_job **o) {
         return sg_copy_async(context_, a_, b_, UINT64_MAX, nullptr, o);
       })},
      {"overlap", argument, {"overlap"}, nulls<sg_job>([&](sg_job **o) {
         return sg_copy_async(context_, a_, a_ + 1, 16, nullptr, o);
       })},
      {"2d nowhere", argument, {"dst"}, copy_2d(nullptr, 8, a_, 8, 8, 2)},
      {"2d from nowhere", argument, {"src"}, copy_2d(a_, 8, nullptr, 8, 8, 2)},
      {"dst_pitch", argument, {"dst_pitch", "7"}, copy_2d(a_, 7, b_, 8, 8, 2)},
      {"src_pitch", argument, {"src_pitch", "7"}, copy_2d(a_, 8, b_, 7, 8, 2)},
      {"2d overflow",
       argument,
       {},
       copy_2d(a_, std::uint64_t{1} << 40, b_, std::uint64_t{1} << 40, 8, std::uint64_t{1} << 40)},
      {"2d overlap", argument, {"overlap"}, copy_2d(a_, 16, a_ + 2, 16, 8, 3)},
  });
}

TEST_P(bad_input, streams_events_jobs_queues) {
  sg_job *const jobs[] = {job_};
  sg_completion completions[2];
  std::int32_t number;
  sg_job_statistics unsized = SG_JOB_STATISTICS_INIT;
  unsized.struct_size = 0;
  check({
      {"", argument, {"priority", "2"}, nulls<sg_stream>([&](sg_stream **out) {
         return create_stream(context_, 2, 0, out);
       })},
      {"", argument, {"priority", "-2"}, nulls<sg_stream>([&](sg_stream **out) {
         return create_stream(context_, -2, 0, out);
       })},
      {"", argument, {"timeout_ns", "-2"}, [&] { return sg_stream_synchronize(stream_, -2); }},
      {"", argument, {"timeout_ns", "-2"}, [&] { return sg_event_wait(event_, -2); }},
      {"", argument, {"callback"}, [&] { return sg_event_on_complete(event_, nullptr, nullptr); }},
      {"", argument, {"timeout_ns", "-2"}, [&] { return sg_job_wait(job_, -2, nullptr); }},
      {"", argument, {"callback"}, [&] { return sg_job_on_complete(job_, nullptr, nullptr); }},
      {"", argument, {"struct_size"}, [&] { return sg_job_get_statistics(job_, &unsized); }},
      {"", argument, {"count", "-1"}, [&] { return sg_job_wait_all(jobs, -1, 0, nullptr); }},
      {"", argument, {"jobs"}, [&] { return sg_job_wait_all(nullptr, 1, 0, nullptr); }},
      {"", argument, {"timeout_ns", "-5"}, [&] { return sg_job_wait_all(jobs, 1, -5, nullptr); }},
      {"", argument, {"count", "0"}, [&] { return sg_job_wait_any(jobs, 0, 0, &number, nullptr); }},
      {"", argument, {"jobs"}, [&] { return sg_job_wait_any(nullptr, 1, 0, &number, nullptr); }},
      {"", argument, {"timeout_ns", "-5"}, [&] { return sg_job_wait_any(jobs, 1, -5, &number, nullptr); }},
      {"",
       argument,
       {"capacity", "0"},
       [&] { return sg_queue_next_batch(queue_, completions, sizeof(sg_completion), 0, 0, &number); }},
      {"",
       argument,
       {"capacity", "-3"},
       [&] { return sg_queue_next_batch(queue_, completions, sizeof(sg_completion), -3, 0, &number); }},
      {"",
       argument,
       {"timeout_ns", "-2"},
       [&] { return sg_queue_next_batch(queue_, completions, sizeof(sg_completion), 1, -2, &number); }},
  });
}

ON_EACH_DEVICE(bad_input);

// Hostile values of the environment variable and of device names, which messages print escaped.
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
                           "sim:h200?fail-copy=-1", "sim:h200?memory=99999999999999999999GiB", "%s%n%s%n",
                           "sim:/dev/null", "sim:/etc", "cpu:1", "sim:../../etc/passwd", endless.c_str()}) {
    const sg_status direct = open(name);
    EXPECT_TRUE(direct == SG_STATUS_INVALID_ARGUMENT || direct == SG_STATUS_NO_DEVICE)
        << sg_status_name(direct) << name;
    ASSERT_EQ(0, setenv("SG_DEVICE", name, 1));
    const sg_status by_variable = open("auto");
    EXPECT_TRUE(by_variable == SG_STATUS_INVALID_ARGUMENT || by_variable == SG_STATUS_NO_DEVICE)
        << sg_status_name(by_variable) << name;
  }
  setenv("SG_DEVICE", "sim:h200", 1);
  const context chosen = open_context("auto");
  sg_device_info info = SG_DEVICE_INFO_INIT;
  EXPECT_OK(sg_context_get_device_info(chosen, 0, &info));
  EXPECT_STREQ("sim:h200", info.name);
  unsetenv("SG_DEVICE");
}

}  // namespace
}  // namespace sg_test
