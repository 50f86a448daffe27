// SPDX-License-Identifier: Apache-2.0
// Custom operations: what the function gets, order by memory, failures, graphs, stages of pipelines, refused calls. The
// functions compute on the host, also on an emulated GPU: tests/cuda/interop_test.cpp has functions for a real one.
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/harness.hpp"

namespace sg_test {
namespace {

using doubles = std::vector<double>;
using pipeline = owned<sg_pipeline, sg_pipeline_release>;
using graph = owned<sg_graph, sg_graph_release>;

constexpr std::size_t size = 1000;

// An emulated GPU has the host's memory; NULL on other devices.
using synchronize_function = int (*)(void *);
synchronize_function emulated_synchronize() {
  static const auto found = []() -> synchronize_function {
    void *const loaded = dlopen("libsg_test_emulated_gpu.so", RTLD_NOW | RTLD_NOLOAD);
    return loaded ? reinterpret_cast<synchronize_function>(dlsym(loaded, "cudaStreamSynchronize")) : nullptr;
  }();
  return found;
}

// Lets what precedes the function on its stream complete. Whether it has the stream that it should have.
bool comes_behind(const sg_custom_call &call) {
  const synchronize_function synchronize = emulated_synchronize();
  return synchronize ? call.native_stream && synchronize(call.native_stream) == 0 : !call.native_stream;
}

// y += x of `size` doubles, and how often and how it was called.
struct addition {
  std::atomic<int> calls{0};
  std::atomic<bool> is_right{true};
  sg_status result = SG_STATUS_OK;
  int delay_ms = 0;

  static sg_status run(const sg_custom_call *call, void *user) {
    auto &own = *static_cast<addition *>(user);
    ++own.calls;
    if (call->struct_size != sizeof *call || !comes_behind(*call) || call->operand_count != 2) own.is_right = false;
    if (own.delay_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(own.delay_ms));
    const auto *x = static_cast<const double *>(call->operands[0]);
    auto *y = static_cast<double *>(call->operands[1]);
    for (std::size_t i = 0; i < size; ++i) y[i] += x[i];
    if (own.result != SG_STATUS_OK) std::snprintf(call->message, call->message_size, "as told");
    return own.result;
  }
};

class custom : public on_each_device {
 protected:
  void SetUp() override {
    on_each_device::SetUp();
    if (std::strncmp(GetParam(), "cuda", 4) == 0 && !emulated_synchronize()) GTEST_SKIP() << "a GPU's memory";
  }
  struct memory {
    buffer owner;
    double *data = nullptr;
  };
  memory place(const doubles &values) {
    memory made;
    void *data = nullptr;
    EXPECT_OK(sg_buffer_create(context_, values.size() * sizeof(double), nullptr, made.owner.out()));
    EXPECT_OK(sg_buffer_data(made.owner, &data));
    made.data = static_cast<double *>(data);
    EXPECT_OK(sg_copy(context_, data, values.data(), values.size() * sizeof(double), nullptr));
    return made;
  }
  doubles fetch(const double *from, std::size_t count = size) {
    doubles values(count);
    EXPECT_OK(sg_copy(context_, values.data(), from, count * sizeof(double), nullptr));
    return values;
  }
  static void run(sg_graph *recorded) {
    job done;
    ASSERT_OK(sg_graph_run_async(recorded, nullptr, done.out()));
    ASSERT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
  }
  // operands: x is read, y changed.
  struct wanted {
    sg_custom_operand operands[2];
    sg_custom_desc desc = SG_CUSTOM_DESC_INIT;
    wanted(addition &what, const void *x, void *y)
        : operands{{const_cast<void *>(x), size * sizeof(double), SG_ACCESS_READ},
                   {y, size * sizeof(double), SG_ACCESS_READ_WRITE}} {
      desc.function = addition::run;
      desc.user = &what;
      desc.operands = operands;
      desc.operand_count = 2;
    }
    wanted(const wanted &) = delete;
    wanted &operator=(const wanted &) = delete;
  };
};

// A function occupies a thread that the awaited job may need.
struct waiting_function {
  sg_context *context;
  sg_job *pending;
  sg_queue *empty;
  double one = 1, result = -1;
  std::vector<sg_status> statuses;
  std::string message;

  static sg_status run(const sg_custom_call *, void *user) {
    auto &own = *static_cast<waiting_function *>(user);
    const sg_gemm_desc gemm = make_gemm(&own.one, &own.one, &own.result, 1, 1, 1);
    sg_completion taken{};
    std::int32_t count = 0;
    own.statuses = {sg_job_wait(own.pending, SG_FOREVER, nullptr),
                    sg_job_wait(own.pending, 1000 * ms, nullptr),
                    sg_job_wait_all(&own.pending, 1, SG_FOREVER, nullptr),
                    sg_job_wait_any(&own.pending, 1, SG_FOREVER, &count, nullptr),
                    sg_context_synchronize(own.context, SG_FOREVER),
                    sg_queue_next_batch(own.empty, &taken, sizeof(sg_completion), 1, SG_FOREVER, &count),
                    sg_gemm(own.context, &gemm, nullptr)};
    own.message = sg_last_error_message();
    return SG_STATUS_OK;
  }
};

TEST_P(custom, a_function_that_would_wait_in_the_library_is_refused) {
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  queue empty;
  ASSERT_OK(sg_queue_create(nullptr, nullptr, empty.out()));
  const memory x = place(doubles(size, 1));
  waiting_function waits{context_, gated.get(), empty, 1, -1, {}, {}};
  const sg_custom_operand operand = {x.data, size * sizeof(double), SG_ACCESS_READ};
  sg_custom_desc desc = SG_CUSTOM_DESC_INIT;
  desc.function = waiting_function::run, desc.user = &waits;
  desc.operands = &operand, desc.operand_count = 1;
  ASSERT_OK(sg_custom(context_, &desc, nullptr));
  ASSERT_EQ(7u, waits.statuses.size());
  for (const sg_status each : waits.statuses) EXPECT_STREQ("SG_STATUS_DEADLOCK", sg_status_name(each));
  EXPECT_NE(std::string::npos, waits.message.find("function of a custom operation")) << waits.message;
  gated.open();
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  EXPECT_EQ(-1, waits.result) << "the refused GEMM was not submitted";
  waits.pending = gated.get();
  ASSERT_OK(sg_custom(context_, &desc, nullptr));
  EXPECT_OK(waits.statuses[0]) << "a complete job has a status";
}

TEST_P(custom, follows_and_precedes_jobs_by_its_memory) {
  addition add;
  add.delay_ms = 20;  // a job that did not wait would be seen
  const memory x = place(doubles(size, 1)), y = place(doubles(size, 10));
  for (int i = 0; i < 3; ++i) {
    const doubles filled(size, i + 2);
    ASSERT_OK(sg_copy_async(context_, x.data, filled.data(), size * sizeof(double), nullptr, nullptr));
    const wanted sum(add, x.data, y.data);
    ASSERT_OK(sg_custom_async(context_, &sum.desc, nullptr, nullptr));
    ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  }
  EXPECT_EQ(doubles(size, 19), fetch(y.data));
  // Without a wait between them.
  for (int i = 0; i < 3; ++i) {
    const wanted sum(add, x.data, y.data);
    ASSERT_OK(sg_custom_async(context_, &sum.desc, nullptr, nullptr));
    const wanted back(add, y.data, x.data);
    ASSERT_OK(sg_custom_async(context_, &back.desc, nullptr, nullptr));
  }
  // (4, 19), (4, 23), (27, 23), (27, 50), (77, 50), (77, 127), (204, 127)
  EXPECT_EQ(doubles(size, 127), fetch(y.data));
  EXPECT_EQ(doubles(size, 204), fetch(x.data));
  EXPECT_EQ(9, add.calls);
  EXPECT_TRUE(add.is_right);
}

TEST_P(custom, accesses_pinned_memory) {
  addition add;
  void *pinned = nullptr;
  ASSERT_OK(sg_host_alloc(context_, size * sizeof(double), &pinned));
  std::fill_n(static_cast<double *>(pinned), size, 3.0);
  const memory y = place(doubles(size, 4));
  const wanted sum(add, pinned, y.data);
  ASSERT_OK(sg_custom(context_, &sum.desc, nullptr));
  EXPECT_EQ(doubles(size, 7), fetch(y.data));
  ASSERT_OK(sg_host_free(context_, pinned));
}

TEST_P(custom, its_failure_is_the_jobs_and_of_those_that_read_its_result) {
  addition add;
  add.result = SG_STATUS_UNSUPPORTED;
  const memory x = place(doubles(size, 1)), y = place(doubles(size, 2));
  const wanted sum(add, x.data, y.data);
  job failing, later;
  ASSERT_OK(sg_custom_async(context_, &sum.desc, nullptr, failing.out()));
  doubles read(size);
  ASSERT_OK(sg_copy_async(context_, read.data(), y.data, size * sizeof(double), nullptr, later.out()));
  EXPECT_STATUS(SG_STATUS_UNSUPPORTED, sg_job_wait(failing, SG_FOREVER, nullptr));
  char text[256];
  ASSERT_OK(sg_job_message(failing, text, sizeof text, nullptr));
  EXPECT_STREQ("the function of a custom operation returned -5 (SG_STATUS_UNSUPPORTED): as told", text);
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, sg_job_wait(later, SG_FOREVER, nullptr));
  add.result = static_cast<sg_status>(7);
  EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, sg_custom(context_, &sum.desc, nullptr));
  add.result = SG_STATUS_OK;
  const doubles fresh(size, 5);
  ASSERT_OK(sg_copy(context_, y.data, fresh.data(), size * sizeof(double), nullptr));
  ASSERT_OK(sg_custom(context_, &sum.desc, nullptr));
  EXPECT_EQ(doubles(size, 6), fetch(y.data));
}

TEST_P(custom, an_exception_fails_the_job) {
  const memory x = place(doubles(size, 1)), y = place(doubles(size, 2));
  addition add;
  wanted sum(add, x.data, y.data);
  const auto fails_with = [&](sg_custom_function function, sg_status status, const char *text) {
    sum.desc.function = function;
    EXPECT_STATUS(status, sg_custom(context_, &sum.desc, nullptr));
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), text)) << sg_last_error_message();
  };
  fails_with([](const sg_custom_call *, void *) -> sg_status { throw std::runtime_error("no such page"); },
             SG_STATUS_BACKEND_FAILURE, "threw an exception: no such page");
  fails_with([](const sg_custom_call *, void *) -> sg_status { throw std::bad_alloc(); }, SG_STATUS_OUT_OF_MEMORY,
             "out of memory");
  fails_with([](const sg_custom_call *, void *) -> sg_status { throw 5; }, SG_STATUS_BACKEND_FAILURE,
             "threw an exception");
}

TEST_P(custom, cancelled_before_it_runs_it_is_not_called) {
  gated_job behind(context_);
  SKIP_WITHOUT_GATE(behind);
  addition add;
  const memory x = place(doubles(size, 1)), y = place(doubles(size, 2));
  const wanted sum(add, x.data, y.data);
  sg_job *before[] = {behind.get()};
  sg_submit submit = SG_SUBMIT_INIT;
  submit.after = before;
  submit.after_count = 1;
  job pending;
  ASSERT_OK(sg_custom_async(context_, &sum.desc, &submit, pending.out()));
  ASSERT_OK(sg_job_cancel(pending));
  behind.open();
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(pending, SG_FOREVER, nullptr));
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  EXPECT_EQ(0, add.calls);
  EXPECT_EQ(doubles(size, 2), fetch(y.data));
}

TEST_P(custom, is_recorded_and_updated) {
  addition add, other;
  const memory x = place(doubles(size, 1)), y = place(doubles(size, 0)), z = place(doubles(size, 0));
  graph recorded;
  ASSERT_OK(sg_graph_create(context_, recorded.out()));
  sg_submit submit = SG_SUBMIT_INIT;
  submit.graph = recorded;
  const wanted to_y(add, x.data, y.data), to_z(add, y.data, z.data);
  ASSERT_OK(sg_custom_async(context_, &to_y.desc, &submit, nullptr));
  ASSERT_OK(sg_custom_async(context_, &to_z.desc, &submit, nullptr));
  EXPECT_EQ(0, add.calls);
  for (int i = 0; i < 3; ++i) run(recorded);
  EXPECT_EQ(6, add.calls);
  EXPECT_EQ(doubles(size, 3), fetch(y.data));
  EXPECT_EQ(doubles(size, 6), fetch(z.data));
  const wanted to_x(add, z.data, x.data);
  sg_operation_desc changed = SG_OPERATION_DESC_INIT;
  changed.operation = SG_OPERATION_CUSTOM;
  changed.desc = &to_x.desc;
  ASSERT_OK(sg_graph_update(recorded, 1, &changed));
  run(recorded);
  EXPECT_EQ(doubles(size, 7), fetch(x.data));
  const wanted by_other(other, z.data, x.data);
  changed.desc = &by_other.desc;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(recorded, 1, &changed));
}

// relu(x) by a function, then two layers, then 10 * y by a function into the result.
TEST_P(custom, is_a_stage_of_a_pipeline) {
  constexpr std::int64_t n = 8;
  constexpr std::uint64_t bytes = n * n * sizeof(double);
  const doubles w(n * n, 0.5);
  std::atomic<int> calls{0};
  const auto relu = [](const sg_custom_call *call, void *user) -> sg_status {
    *static_cast<std::atomic<int> *>(user) += comes_behind(*call) ? 1 : 1000;
    const auto *x = static_cast<const double *>(call->operands[0]);
    auto *y = static_cast<double *>(call->operands[1]);
    for (std::int64_t i = 0; i < n * n; ++i) y[i] = x[i] > 0 ? x[i] : 0;
    return SG_STATUS_OK;
  };
  const auto tenfold = [](const sg_custom_call *call, void *user) -> sg_status {
    *static_cast<std::atomic<int> *>(user) += comes_behind(*call) ? 1 : 1000;
    const auto *x = static_cast<const double *>(call->operands[0]);
    auto *y = static_cast<double *>(call->operands[1]);
    for (std::int64_t i = 0; i < n * n; ++i) y[i] = 10 * x[i];
    return SG_STATUS_OK;
  };
  for (const sg_weights_place weights_place : {SG_WEIGHTS_RESIDENT, SG_WEIGHTS_STREAMED}) {
    calls = 0;
    sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
    options.input_bytes = bytes;
    pipeline made;
    ASSERT_OK(sg_pipeline_create(context_, &options, made.out()));
    const sg_weight weight = {w.data(), bytes};
    for (int s = 0; s < 3; ++s) {
      sg_stage_desc desc = SG_STAGE_DESC_INIT;
      desc.output_bytes = bytes;
      if (s == 1) desc.weights = &weight, desc.weight_count = 1, desc.place = weights_place;
      sg_stage stage = SG_STAGE_INIT;
      ASSERT_OK(sg_pipeline_add_stage(made, &desc, &stage));
      sg_submit submit = SG_SUBMIT_INIT;
      submit.graph = stage.graph;
      if (s == 1) {
        const sg_gemm_desc gemm =
            make_gemm(static_cast<const double *>(stage.input), static_cast<double *>(stage.weights[0]),
                      static_cast<double *>(stage.output), n, n, n);
        ASSERT_OK(sg_gemm_async(context_, &gemm, &submit, nullptr));
        continue;
      }
      const sg_custom_operand operands[] = {{const_cast<void *>(stage.input), bytes, SG_ACCESS_READ},
                                            {stage.output, bytes, SG_ACCESS_WRITE}};
      sg_custom_desc desc_of = SG_CUSTOM_DESC_INIT;
      desc_of.function = s == 0 ? static_cast<sg_custom_function>(relu) : static_cast<sg_custom_function>(tenfold);
      desc_of.user = &calls;
      desc_of.operands = operands;
      desc_of.operand_count = 2;
      ASSERT_OK(sg_custom_async(context_, &desc_of, &submit, nullptr));
    }
    constexpr int count = 9;
    std::vector<doubles> inputs, outputs(count, doubles(n * n));
    for (int b = 0; b < count; ++b) inputs.push_back(doubles(n * n, b % 2 == 0 ? b + 1.0 : -b));
    for (int b = 0; b < count; ++b)
      ASSERT_OK(sg_pipeline_push_async(made, inputs[std::size_t(b)].data(), outputs[std::size_t(b)].data(), nullptr,
                                       nullptr));
    ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
    for (int b = 0; b < count; ++b)
      EXPECT_EQ(doubles(n * n, b % 2 == 0 ? 10 * (b + 1) * 0.5 * n : 0), outputs[std::size_t(b)]) << b;
    EXPECT_EQ(2 * count, calls);
  }
}

TEST_P(custom, many_threads_submit) {
  addition add;
  const memory x = place(doubles(size, 1));
  constexpr int threads = 4, each = 25;
  std::vector<memory> sums;
  for (int t = 0; t < threads; ++t) sums.push_back(place(doubles(size, 0)));
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        const wanted sum(add, x.data, sums[std::size_t(t)].data);
        EXPECT_OK(sg_custom_async(context_, &sum.desc, nullptr, nullptr));
      }
    });
  for (std::thread &one : running) one.join();
  for (const memory &sum : sums) EXPECT_EQ(doubles(size, each), fetch(sum.data));
  EXPECT_EQ(threads * each, add.calls);
}

TEST_P(custom, predicts_what_it_is_told) {
  if (std::strcmp(GetParam(), "sim:h200") != 0) GTEST_SKIP() << "virtual time";
  addition add;
  const memory x = place(doubles(size, 1)), y = place(doubles(size, 0));
  wanted sum(add, x.data, y.data);
  sum.desc.seconds = 0.25;
  job done;
  ASSERT_OK(sg_custom_async(context_, &sum.desc, nullptr, done.out()));
  ASSERT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
  sg_job_statistics seen = SG_JOB_STATISTICS_INIT;
  ASSERT_OK(sg_job_get_statistics(done, &seen));
  EXPECT_NEAR(0.25, double(seen.end_ns - seen.start_ns) * 1e-9, 0.001);
}

TEST_P(custom, refuses_bad_calls) {
  addition add;
  const memory x = place(doubles(size, 1)), y = place(doubles(size, 2));
  const auto refused = [&](const char *text, sg_status status, auto &&change) {
    wanted sum(add, x.data, y.data);
    change(sum);
    EXPECT_STATUS(status, sg_custom(context_, &sum.desc, nullptr));
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), text)) << sg_last_error_message();
  };
  const sg_status bad = SG_STATUS_INVALID_ARGUMENT;
  refused("desc->function is NULL", bad, [](wanted &w) { w.desc.function = nullptr; });
  refused("desc->operands is NULL", bad, [](wanted &w) { w.desc.operands = nullptr; });
  refused("desc->operand_count is 0", bad, [](wanted &w) { w.desc.operand_count = 0; });
  refused("desc->operand_count is 5", bad, [](wanted &w) { w.desc.operand_count = 5; });
  refused("desc->compute_units is -2", bad, [](wanted &w) { w.desc.compute_units = -2; });
  refused("desc->seconds is -1", bad, [](wanted &w) { w.desc.seconds = -1; });
  refused("desc->seconds is nan", bad, [](wanted &w) { w.desc.seconds = std::numeric_limits<double>::quiet_NaN(); });
  refused("desc->operands[1].data is NULL", bad, [](wanted &w) { w.operands[1].data = nullptr; });
  refused("desc->operands[0].bytes is 0", bad, [](wanted &w) { w.operands[0].bytes = 0; });
  refused("desc->operands[0].access is 4", bad, [](wanted &w) { w.operands[0].access = static_cast<sg_access>(4); });
  refused("desc->operands[1].reserved[2] is 1", bad, [](wanted &w) { w.operands[1].reserved[2] = 1; });
  refused("overlaps operand 0", bad, [&](wanted &w) { w.operands[1].data = x.data + 1, w.operands[1].bytes = 8; });
  EXPECT_EQ(0, add.calls);
  EXPECT_EQ(doubles(size, 2), fetch(y.data));
}

ON_EACH_DEVICE(custom);

}  // namespace
}  // namespace sg_test
