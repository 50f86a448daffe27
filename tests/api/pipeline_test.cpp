// SPDX-License-Identifier: Apache-2.0
// sg_pipeline: results for every place of weights and batches, order, failures, limits, functions, predictions, refused
// calls.
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <random>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>

#include "support/harness.hpp"
#include "support/pipeline_network.hpp"
#include "support/sanitizers.hpp"

namespace sg_test {
namespace {

class pipelines : public on_each_device {
 protected:
  void push_and_check(const network &net, unsigned count, sg_memory_kind in, sg_memory_kind out) {
    std::vector<std::unique_ptr<placed>> inputs, results;
    std::vector<job> jobs(count);
    for (unsigned i = 0; i < count; ++i) {
      inputs.push_back(std::make_unique<placed>(context_, in, net.input(i)));
      results.push_back(std::make_unique<placed>(context_, out, doubles(net.result_size(), -1)));
    }
    for (unsigned i = 0; i < count; ++i)
      ASSERT_OK(sg_pipeline_push_async(net, inputs[i]->data(), results[i]->data(), nullptr, jobs[i].out()));
    for (unsigned i = 0; i < count; ++i) {
      ASSERT_OK(sg_job_wait(jobs[i], SG_FOREVER, nullptr));
      EXPECT_EQ(net.expected(i), results[i]->values()) << "batch " << i;
    }
  }
};

TEST_P(pipelines, every_place_gives_the_same_results) {
  for (const sg_memory_kind weights : memory_kinds)
    for (const sg_weights_place place : {SG_WEIGHTS_AUTO, SG_WEIGHTS_RESIDENT, SG_WEIGHTS_STREAMED})
      for (const sg_memory_kind ends : memory_kinds) {
        SCOPED_TRACE(testing::Message() << "weights " << weights << " place " << place << " ends " << ends);
        network_options options;
        options.weights = weights;
        options.place = place;
        const network net(context_, options);
        push_and_check(net, 5, ends, ends);
      }
}

TEST_P(pipelines, every_number_of_buffers_gives_the_same_results) {
  for (std::int32_t depth = 1; depth <= 4; ++depth)
    for (std::int32_t buffers = 1; buffers <= 4; ++buffers) {
      SCOPED_TRACE(testing::Message() << depth << " batches, " << buffers << " weight buffers");
      network_options options;
      options.pipeline.depth = depth;
      options.pipeline.weight_buffers = buffers;
      options.pipeline.batches_in_flight = 20;
      options.place = SG_WEIGHTS_STREAMED;
      const network net(context_, options);
      push_and_check(net, 12, SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE);
      sg_pipeline_info info = SG_PIPELINE_INFO_INIT;
      ASSERT_OK(sg_pipeline_prepare(net, &info));
      EXPECT_EQ(depth, info.depth);
      EXPECT_EQ(info.streamed_stages > 0 ? buffers : 0, info.weight_buffers);
    }
}

TEST_P(pipelines, one_stage_and_many) {
  for (const std::size_t stages : {1, 2, 9}) {
    network_options options;
    options.widths.assign(stages + 1, 4);
    options.rows = 1;
    options.place = SG_WEIGHTS_STREAMED;
    const network net(context_, options);
    push_and_check(net, 7, SG_MEMORY_PAGEABLE, SG_MEMORY_PINNED);
  }
}

TEST_P(pipelines, results_at_odd_addresses_are_copied) {
  const network net(context_, {});
  doubles input(net.input(0)), result(net.result_size() + 1);
  input.insert(input.begin(), 0);  // no address is a multiple of 64
  ASSERT_OK(sg_pipeline_push(net, input.data() + 1, result.data() + 1, nullptr));
  EXPECT_EQ(net.expected(0), doubles(result.begin() + 1, result.end()));
}

TEST_P(pipelines, results_are_complete_in_the_order_of_the_batches) {
  network_options options;
  options.pipeline.depth = 3;
  const network net(context_, options);
  queue completions;
  ASSERT_OK(sg_queue_create(context_, nullptr, completions.out()));
  constexpr unsigned count = 30;
  const doubles input = net.input(0);
  std::vector<doubles> results(count, doubles(net.result_size()));
  for (unsigned i = 0; i < count; ++i) {
    sg_submit submit = SG_SUBMIT_INIT;
    submit.queue = completions;
    submit.tag = i;
    ASSERT_OK(sg_pipeline_push_async(net, input.data(), results[i].data(), &submit, nullptr));
  }
  for (unsigned i = 0; i < count;) {
    sg_completion seen[count];
    std::int32_t taken = 0;
    ASSERT_OK(sg_queue_next_batch(completions, seen, sizeof(sg_completion), count, SG_FOREVER, &taken));
    for (std::int32_t k = 0; k < taken; ++k) EXPECT_EQ(i++, seen[k].tag);
  }
}

// softmax(X W) X^T-like work with a workspace: scores = X W in the workspace, softmax in place, then times W again.
TEST_P(pipelines, a_stage_has_several_operations_and_a_workspace) {
  constexpr std::int64_t n = 3;
  const doubles w = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  options.input_bytes = n * n * sizeof(double);
  pipeline made;
  ASSERT_OK(sg_pipeline_create(context_, &options, made.out()));
  const sg_weight weight = {w.data(), n * n * sizeof(double)};
  sg_stage_desc desc = SG_STAGE_DESC_INIT;
  desc.name = "attention";
  desc.output_bytes = desc.workspace_bytes = n * n * sizeof(double);
  desc.weights = &weight;
  desc.weight_count = 1;
  sg_stage stage = SG_STAGE_INIT;
  ASSERT_OK(sg_pipeline_add_stage(made, &desc, &stage));
  sg_submit submit = SG_SUBMIT_INIT;
  submit.graph = stage.graph;
  const auto *in = static_cast<const double *>(stage.input);
  auto *scores = static_cast<double *>(stage.workspace), *out = static_cast<double *>(stage.output);
  const auto *kept = static_cast<const double *>(stage.weights[0]);
  const sg_gemm_desc first = make_gemm(in, kept, scores, n, n, n), last = make_gemm(scores, kept, out, n, n, n);
  sg_softmax_desc softmax = SG_SOFTMAX_DESC_INIT;
  softmax.x = softmax.y = first.c;
  ASSERT_OK(sg_gemm_async(context_, &first, &submit, nullptr));
  ASSERT_OK(sg_softmax_async(context_, &softmax, &submit, nullptr));
  ASSERT_OK(sg_gemm_async(context_, &last, &submit, nullptr));
  const doubles x = {0, 0, 0, 1, 1, 1, -2, -2, -2};
  for (int i = 0; i < 4; ++i) {
    doubles y(9);
    ASSERT_OK(sg_pipeline_push(made, x.data(), y.data(), nullptr));
    for (const double each : y) EXPECT_DOUBLE_EQ(1.0 / 3, each);
  }
}

TEST_P(pipelines, a_cancelled_batch_does_not_stop_the_next) {
  network_options options;
  options.pipeline.depth = 1;
  options.place = SG_WEIGHTS_STREAMED;
  const network net(context_, options);
  const doubles input = net.input(0);
  std::vector<doubles> results(3, doubles(net.result_size()));
  job jobs[3];
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  sg_job *const first = gated.get();
  sg_submit submit = SG_SUBMIT_INIT;
  submit.after = &first;
  submit.after_count = 1;
  ASSERT_OK(sg_pipeline_push_async(net, input.data(), results[0].data(), &submit, jobs[0].out()));
  ASSERT_OK(sg_pipeline_push_async(net, input.data(), results[1].data(), nullptr, jobs[1].out()));
  ASSERT_OK(sg_job_cancel(jobs[0]));
  gated.open();
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(jobs[0], SG_FOREVER, nullptr));
  EXPECT_OK(sg_job_wait(jobs[1], SG_FOREVER, nullptr));
  EXPECT_EQ(net.expected(0), results[1]);
  ASSERT_OK(sg_pipeline_push(net, input.data(), results[2].data(), nullptr));
  EXPECT_EQ(net.expected(0), results[2]);
}

// Buffers are used by stages of several sizes, so that a batch rewrites only parts of what a failed one was to write.
// Nobody observes the failure.
TEST_P(pipelines, an_unobserved_failure_stays_in_its_batch) {
  for (const std::vector<std::size_t> &widths :
       {std::vector<std::size_t>{4, 2, 4, 4}, {4, 8, 2, 3}, {2, 9, 5, 1, 6}, {6, 1, 1, 8}}) {
    network_options options;
    options.widths = widths;
    options.pipeline.depth = options.pipeline.weight_buffers = 1;
    options.place = SG_WEIGHTS_STREAMED;
    const network net(context_, options);
    const doubles input = net.input(0);
    std::vector<doubles> results(6, doubles(net.result_size()));
    std::vector<job> jobs(results.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      sg_submit submit = SG_SUBMIT_INIT;
      submit.timeout_ns = i == 1 ? 1 : 0;
      ASSERT_OK(sg_pipeline_push_async(net, input.data(), results[i].data(), &submit, jobs[i].out()));
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (i == 1) continue;
      EXPECT_OK(sg_job_wait(jobs[i], SG_FOREVER, nullptr)) << i;
      EXPECT_EQ(net.expected(0), results[i]) << i;
    }
    // Now it is observed: later tests may get the memory of its result.
    EXPECT_STATUS(SG_STATUS_DEADLINE_EXCEEDED, sg_job_wait(jobs[1], SG_FOREVER, nullptr));
  }
}

TEST_P(pipelines, untracked_batches_keep_their_own_order) {
  network_options options;
  options.pipeline.depth = 1;
  options.pipeline.batches_in_flight = 30;
  options.place = SG_WEIGHTS_STREAMED;
  const network net(context_, options);
  std::vector<doubles> inputs, results(20, doubles(net.result_size()));
  for (unsigned i = 0; i < results.size(); ++i) inputs.push_back(net.input(i));
  sg_submit submit = SG_SUBMIT_INIT;
  submit.flags = SG_SUBMIT_UNTRACKED;
  for (unsigned i = 0; i < results.size(); ++i)
    ASSERT_OK(sg_pipeline_push_async(net, inputs[i].data(), results[i].data(), &submit, nullptr));
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  for (unsigned i = 0; i < results.size(); ++i) EXPECT_EQ(net.expected(i), results[i]) << i;
}

TEST_P(pipelines, addresses_of_another_stage_are_refused_and_a_refused_pipeline_can_be_completed) {
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  options.input_bytes = 4 * sizeof(double);
  pipeline made;
  ASSERT_OK(sg_pipeline_create(context_, &options, made.out()));
  sg_stage_desc desc = SG_STAGE_DESC_INIT;
  desc.output_bytes = options.input_bytes;
  sg_stage stages[2] = {SG_STAGE_INIT, SG_STAGE_INIT};
  for (sg_stage &each : stages) ASSERT_OK(sg_pipeline_add_stage(made, &desc, &each));
  const auto record = [&](const sg_stage &to, const void *from) {
    sg_submit submit = SG_SUBMIT_INIT;
    submit.graph = to.graph;
    return sg_copy_async(context_, to.output, from, desc.output_bytes, &submit, nullptr);
  };
  ASSERT_OK(record(stages[0], stages[0].input));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_pipeline_prepare(made, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "stage 1 of the pipeline has no operation"));
  ASSERT_OK(record(stages[1], stages[1].input));
  doubles x = {1, 2, 3, 4}, y(4);
  ASSERT_OK(sg_pipeline_push(made, x.data(), y.data(), nullptr));
  EXPECT_EQ(x, y);

  ASSERT_OK(sg_pipeline_create(context_, &options, made.out()));
  for (sg_stage &each : stages) {
    each = sg_stage(SG_STAGE_INIT);
    ASSERT_OK(sg_pipeline_add_stage(made, &desc, &each));
  }
  ASSERT_OK(record(stages[0], stages[0].input));
  ASSERT_OK(record(stages[1], stages[0].input));  // as a residual connection would
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_pipeline_prepare(made, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "stage 1 accesses memory of stage 0"))
      << sg_last_error_message();
}

TEST_P(pipelines, at_the_limit_a_push_is_refused_or_waits) {
  for (const sg_when_full when : {SG_WHEN_FULL_REFUSE, SG_WHEN_FULL_BLOCK}) {
    network_options options;
    options.pipeline.batches_in_flight = 2;
    options.pipeline.when_full = when;
    const network net(context_, options);
    const doubles input = net.input(0);
    std::vector<doubles> results(3, doubles(net.result_size()));
    gated_job gated(context_);
    SKIP_WITHOUT_GATE(gated);
    sg_job *const first = gated.get();
    sg_submit submit = SG_SUBMIT_INIT;
    submit.after = &first;
    submit.after_count = 1;
    ASSERT_OK(sg_pipeline_push_async(net, input.data(), results[0].data(), &submit, nullptr));
    ASSERT_OK(sg_pipeline_push_async(net, input.data(), results[1].data(), nullptr, nullptr));
    if (when == SG_WHEN_FULL_REFUSE) {
      EXPECT_STATUS(SG_STATUS_BUSY, sg_pipeline_push_async(net, input.data(), results[2].data(), nullptr, nullptr));
      EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "2 batches are in flight")) << sg_last_error_message();
      gated.open();
      ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
      EXPECT_OK(sg_pipeline_push(net, input.data(), results[2].data(), nullptr));
    } else {
      auto third = std::async(std::launch::async,
                              [&] { return sg_pipeline_push(net, input.data(), results[2].data(), nullptr); });
      EXPECT_EQ(std::future_status::timeout, third.wait_for(std::chrono::milliseconds(20)));
      gated.open();
      EXPECT_OK(third.get());
    }
    ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
    for (const doubles &each : results) EXPECT_EQ(net.expected(0), each);
  }
}

TEST_P(pipelines, several_threads_push) {
  network_options options;
  options.place = SG_WEIGHTS_STREAMED;
  const network net(context_, options), other(context_, options);
  constexpr unsigned threads = 4, each_pushes = 10;
  std::vector<std::thread> pushing;
  for (unsigned t = 0; t < threads; ++t)
    pushing.emplace_back([&, t] {
      const network &in = t % 2 == 0 ? net : other;
      const doubles input = in.input(t);
      for (unsigned i = 0; i < each_pushes; ++i) {
        doubles result(in.result_size());
        EXPECT_OK(sg_pipeline_push(in, input.data(), result.data(), nullptr));
        EXPECT_EQ(in.expected(t), result);
      }
    });
  for (std::thread &each : pushing) each.join();
}

TEST_P(pipelines, a_released_pipeline_finishes_its_batches) {
  network net(context_, {});
  const doubles input = net.input(0);
  doubles result(net.result_size());
  job last;
  ASSERT_OK(sg_pipeline_push_async(net, input.data(), result.data(), nullptr, last.out()));
  ASSERT_OK(net.handle().reset());
  ASSERT_OK(sg_job_wait(last, SG_FOREVER, nullptr));
  EXPECT_EQ(net.expected(0), result);
}

// Doubles its input in even batches and copies it in odd ones; fails in batch 5.
struct by_batch {
  sg_context *context;
  sg_pipeline *reenters = nullptr;
  std::vector<std::int64_t> seen;
  std::thread::id thread;
  sg_status nested = SG_STATUS_OK;

  static sg_status record(const sg_stage *stage, void *user) {
    auto &own = *static_cast<by_batch *>(user);
    own.seen.push_back(stage->batch);
    own.thread = std::this_thread::get_id();
    if (own.reenters) own.nested = sg_pipeline_push(own.reenters, &own, &own.seen, nullptr);
    if (stage->batch == 5) return SG_STATUS_UNSUPPORTED;
    sg_submit submit = SG_SUBMIT_INIT;
    submit.graph = stage->graph;
    if (stage->batch % 2 != 0)
      return sg_copy_async(own.context, stage->output, stage->input, 2 * sizeof(double), &submit, nullptr);
    sg_elementwise_desc add = SG_ELEMENTWISE_DESC_INIT;
    add.function = SG_FUNCTION_ADD;
    add.a = {const_cast<void *>(stage->input), 1, 2, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
    add.b = add.a;
    add.c = add.a;
    add.c.data = stage->output;
    return sg_elementwise_async(own.context, &add, &submit, nullptr);
  }
};

TEST_P(pipelines, a_function_records_each_batch) {
  by_batch own{context_};
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  options.input_bytes = 2 * sizeof(double);
  pipeline made;
  ASSERT_OK(sg_pipeline_create(context_, &options, made.out()));
  sg_stage_desc desc = SG_STAGE_DESC_INIT;
  desc.name = "odd and even";
  desc.output_bytes = 2 * sizeof(double);
  desc.function = by_batch::record;
  desc.user = &own;
  ASSERT_OK(sg_pipeline_add_stage(made, &desc, nullptr));
  const doubles x = {3, 4};
  for (int i = 0; i < 5; ++i) {
    doubles y(2);
    ASSERT_OK(sg_pipeline_push(made, x.data(), y.data(), nullptr));
    EXPECT_EQ(i % 2 == 0 ? doubles({6, 8}) : x, y) << i;
  }
  EXPECT_EQ(std::this_thread::get_id(), own.thread);
  doubles y = {7, 7};
  job none;
  EXPECT_STATUS(SG_STATUS_UNSUPPORTED, sg_pipeline_push_async(made, x.data(), y.data(), nullptr, none.out()));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "odd and even")) << sg_last_error_message();
  EXPECT_EQ(nullptr, none.get());
  EXPECT_EQ(doubles({7, 7}), y);
  EXPECT_EQ((std::vector<std::int64_t>{-1, 0, 1, 2, 3, 4, 5}), own.seen);
  own.seen.clear();
  own.reenters = made;
  EXPECT_STATUS(SG_STATUS_UNSUPPORTED, sg_pipeline_push(made, x.data(), y.data(), nullptr));
  EXPECT_EQ(SG_STATUS_DEADLOCK, own.nested);
}

// What a stage does not write would be the data of another batch.
struct incomplete {
  sg_context *context;
  std::int64_t incomplete_batch;
  std::uint64_t bytes;  // that this batch writes
  static sg_status record(const sg_stage *stage, void *user) {
    const auto &own = *static_cast<incomplete *>(user);
    sg_submit submit = SG_SUBMIT_INIT;
    submit.graph = stage->graph;
    const std::uint64_t bytes = stage->batch == own.incomplete_batch ? own.bytes : 4 * sizeof(double);
    return bytes == 0 ? SG_STATUS_OK : sg_copy_async(own.context, stage->output, stage->input, bytes, &submit, nullptr);
  }
};

TEST_P(pipelines, each_byte_of_an_output_is_written_in_each_batch) {
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  options.input_bytes = 4 * sizeof(double);
  sg_stage_desc desc = SG_STAGE_DESC_INIT;
  desc.name = "partly";
  desc.output_bytes = desc.workspace_bytes = options.input_bytes;
  for (const std::uint64_t bytes : {0, 8, 24, 31}) {
    incomplete own{context_, 1, bytes};
    desc.function = incomplete::record, desc.user = &own;
    pipeline made;
    ASSERT_OK(sg_pipeline_create(context_, &options, made.out()));
    ASSERT_OK(sg_pipeline_add_stage(made, &desc, nullptr));
    const doubles x = {3, 4, 5, 6};
    doubles y(4), untouched(4, 7);
    ASSERT_OK(sg_pipeline_push(made, x.data(), y.data(), nullptr));
    EXPECT_EQ(x, y);
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_pipeline_push(made, x.data(), untouched.data(), nullptr)) << bytes;
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "partly")) << sg_last_error_message();
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), ("none writes byte " + std::to_string(bytes)).c_str()))
        << sg_last_error_message();
    EXPECT_EQ(doubles(4, 7), untouched);
    own.incomplete_batch = -2;
    EXPECT_OK(sg_pipeline_push(made, x.data(), y.data(), nullptr));
  }
  desc.function = nullptr;
  for (const bool to_output : {false, true}) {
    pipeline made;
    sg_stage stage = SG_STAGE_INIT;
    ASSERT_OK(sg_pipeline_create(context_, &options, made.out()));
    ASSERT_OK(sg_pipeline_add_stage(made, &desc, &stage));
    sg_submit submit = SG_SUBMIT_INIT;
    submit.graph = stage.graph;
    ASSERT_OK(sg_copy_async(context_, stage.workspace, stage.input, 32, &submit, nullptr));
    if (to_output) {  // by two matrices of which each has every second element
      sg_gemm_desc halves = SG_GEMM_DESC_INIT;
      halves.a = halves.b = {stage.workspace, 1, 1, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
      halves.c = {stage.output, 1, 1, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
      halves.batch = 2, halves.stride_c = 2;
      ASSERT_OK(sg_gemm_async(context_, &halves, &submit, nullptr));
      EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_pipeline_prepare(made, nullptr)) << "every second is missing";
      halves.c.data = static_cast<double *>(stage.output) + 1;
      ASSERT_OK(sg_gemm_async(context_, &halves, &submit, nullptr));
      EXPECT_OK(sg_pipeline_prepare(made, nullptr));
    } else {
      EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_pipeline_prepare(made, nullptr));
    }
  }
}

struct returns {
  std::int32_t status;
  bool throws;
  static sg_status record(const sg_stage *, void *user) {
    const auto &own = *static_cast<returns *>(user);
    if (own.throws) throw std::runtime_error("thrown by a stage");
    return static_cast<sg_status>(own.status);
  }
};

TEST_P(pipelines, a_function_fails_with_known_statuses_only) {
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  options.input_bytes = 8;
  sg_stage_desc desc = SG_STAGE_DESC_INIT;
  desc.name = "odd";
  desc.output_bytes = 8;
  desc.function = returns::record;
  for (const auto &[given, throws, expected] :
       {std::tuple<std::int32_t, bool, sg_status>{SG_STATUS_NOT_READY, false, SG_STATUS_BACKEND_FAILURE},
        {SG_STATUS_TIMEOUT, false, SG_STATUS_BACKEND_FAILURE},
        {77, false, SG_STATUS_BACKEND_FAILURE},
        {INT32_MIN, false, SG_STATUS_BACKEND_FAILURE},
        {-1000, false, SG_STATUS_BACKEND_FAILURE},
        {SG_STATUS_OUT_OF_MEMORY, false, SG_STATUS_OUT_OF_MEMORY},
        {SG_STATUS_CANCELLED, false, SG_STATUS_CANCELLED},
        {0, true, SG_STATUS_BACKEND_FAILURE}}) {
    returns own{given, throws};
    desc.user = &own;
    pipeline made;
    ASSERT_OK(sg_pipeline_create(context_, &options, made.out()));
    ASSERT_OK(sg_pipeline_add_stage(made, &desc, nullptr));
    EXPECT_STATUS(expected, sg_pipeline_prepare(made, nullptr)) << given;
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), throws ? "thrown by a stage" : "the function of odd"))
        << sg_last_error_message();
  }
}

TEST_P(pipelines, memory_of_a_released_pipeline_is_free_for_the_next) {
  sg_context_options limited = SG_CONTEXT_OPTIONS_INIT;
  limited.device = GetParam();
  limited.memory_limit = 3 << 20;
  context own;
  ASSERT_OK(sg_context_create(&limited, own.out()));
  for (int round = 0; round < 50; ++round) {
    network_options options;
    options.widths = {256, 256, 256};  // 1 MiB of weights
    const network net(own, options);
    ASSERT_OK(sg_pipeline_prepare(net, nullptr)) << round;
    push_and_check(net, 1, SG_MEMORY_PAGEABLE, SG_MEMORY_PAGEABLE);
  }
}

TEST_P(pipelines, weights_that_do_not_fit_are_streamed) {
  network_options options;
  options.widths.assign(9, 32);
  options.rows = 2;
  const std::uint64_t one = 32 * 32 * sizeof(double);
  options.pipeline.memory_limit = 5 * one + 8 * 1024;  // of eight
  const network net(context_, options);
  sg_pipeline_info info = SG_PIPELINE_INFO_INIT;
  ASSERT_OK(sg_pipeline_prepare(net, &info));
  EXPECT_EQ(8, info.stages);
  sg_memory_kind kind = SG_MEMORY_AUTO;
  ASSERT_OK(sg_context_memory_kind(context_, &info, sizeof info, &kind));
  if (kind == SG_MEMORY_DEVICE) {
    EXPECT_EQ(0, info.streamed_stages);
    EXPECT_EQ(0u, info.resident_bytes) << "they are used where they are";
  } else {
    EXPECT_GT(info.streamed_stages, 3);
    EXPECT_LT(info.streamed_stages, 8);
    EXPECT_EQ(8 * one, info.resident_bytes + info.streamed_bytes);
    EXPECT_LE(info.device_bytes, options.pipeline.memory_limit);
  }
  push_and_check(net, 6, SG_MEMORY_PINNED, SG_MEMORY_PINNED);
  char text[1000];
  std::uint64_t size = 0;
  ASSERT_OK(sg_pipeline_describe(net, text, sizeof text, &size));
  EXPECT_EQ(size, std::strlen(text) + 1);
  EXPECT_NE(nullptr, std::strstr(text, "8 stages")) << text;
  EXPECT_NE(nullptr, std::strstr(text, "predicted")) << text;
}

// Untracked operations promise to be independent. These are not: the check finds it before the first batch.
TEST_P(pipelines, a_race_is_found_when_the_pipeline_is_prepared) {
  for (const bool tracked : {true, false}) {
    sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
    options.input_bytes = 4 * sizeof(double);
    pipeline made;
    ASSERT_OK(sg_pipeline_create(context_, &options, made.out()));
    sg_stage_desc desc = SG_STAGE_DESC_INIT;
    desc.output_bytes = desc.workspace_bytes = options.input_bytes;
    sg_stage stage = SG_STAGE_INIT;
    ASSERT_OK(sg_pipeline_add_stage(made, &desc, &stage));
    sg_submit submit = SG_SUBMIT_INIT;
    submit.graph = stage.graph;
    submit.flags = tracked ? 0 : SG_SUBMIT_UNTRACKED;
    sg_elementwise_desc first = SG_ELEMENTWISE_DESC_INIT;
    first.function = SG_FUNCTION_RELU;
    first.a = first.c = {const_cast<void *>(stage.input), 2, 2, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
    first.c.data = stage.workspace;
    sg_elementwise_desc second = first;
    second.a.data = stage.workspace;
    second.c.data = stage.output;
    ASSERT_OK(sg_elementwise_async(context_, &first, &submit, nullptr));
    ASSERT_OK(sg_elementwise_async(context_, &second, &submit, nullptr));
    if (tracked) {
      EXPECT_OK(sg_pipeline_prepare(made, nullptr));
    } else {
      EXPECT_STATUS(SG_STATUS_INTERNAL, sg_pipeline_prepare(made, nullptr));
      EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "in no order")) << sg_last_error_message();
    }
  }
}

TEST_P(pipelines, a_limit_that_is_too_low_names_the_need) {
  network_options options;
  options.pipeline.memory_limit = 64;
  const network net(context_, options);
  EXPECT_STATUS(SG_STATUS_OUT_OF_MEMORY, sg_pipeline_prepare(net, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "needs at least")) << sg_last_error_message();
  doubles input = net.input(0), result(net.result_size(), 7);
  EXPECT_STATUS(SG_STATUS_OUT_OF_MEMORY, sg_pipeline_push(net, input.data(), result.data(), nullptr));
  EXPECT_EQ(doubles(net.result_size(), 7), result);
}

TEST_P(pipelines, refuse_bad_input) {
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  pipeline made;
  const auto refused = [&](const char *names, sg_status status, sg_status expected = SG_STATUS_INVALID_ARGUMENT) {
    EXPECT_STREQ(sg_status_name(expected), sg_status_name(status));
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), names)) << sg_last_error_message();
  };
  refused("options is NULL", sg_pipeline_create(context_, nullptr, made.out()));
  refused("options->input_bytes is 0", sg_pipeline_create(context_, &options, made.out()));
  options.input_bytes = 16;
  refused("out_pipeline is NULL", sg_pipeline_create(context_, &options, nullptr));
  options.depth = -1;
  refused("options->depth is -1", sg_pipeline_create(context_, &options, made.out()));
  options.depth = 0;
  options.weight_buffers = 65;
  refused("options->weight_buffers is 65", sg_pipeline_create(context_, &options, made.out()));
  options.weight_buffers = 0;
  options.when_full = static_cast<sg_when_full>(2);
  refused("options->when_full is 2", sg_pipeline_create(context_, &options, made.out()));
  options.when_full = SG_WHEN_FULL_BLOCK;
  ASSERT_OK(sg_pipeline_create(context_, &options, made.out()));
  refused("has no stage", sg_pipeline_prepare(made, nullptr));
  sg_stage_desc desc = SG_STAGE_DESC_INIT;
  sg_stage stage = SG_STAGE_INIT;
  refused("desc is NULL", sg_pipeline_add_stage(made, nullptr, &stage));
  refused("desc->output_bytes is 0", sg_pipeline_add_stage(made, &desc, &stage));
  desc.output_bytes = 16;
  refused("out_stage is NULL", sg_pipeline_add_stage(made, &desc, nullptr));
  desc.weight_count = -1;
  refused("desc->weight_count is -1", sg_pipeline_add_stage(made, &desc, &stage));
  desc.weight_count = 1;
  refused("desc->weights is NULL", sg_pipeline_add_stage(made, &desc, &stage));
  sg_weight weight = {nullptr, 8};
  desc.weights = &weight;
  refused("desc->weights[0].data is NULL", sg_pipeline_add_stage(made, &desc, &stage));
  weight = {&weight, 0};
  refused("desc->weights[0].bytes is 0", sg_pipeline_add_stage(made, &desc, &stage));
  weight = {&weight, 8, 3};
  refused("desc->weights[0].reserved is 3", sg_pipeline_add_stage(made, &desc, &stage));
  desc.weight_count = 0;
  desc.place = static_cast<sg_weights_place>(3);
  refused("desc->place is 3", sg_pipeline_add_stage(made, &desc, &stage));
  desc.place = SG_WEIGHTS_AUTO;
  ASSERT_OK(sg_pipeline_add_stage(made, &desc, &stage));
  refused("has no operation", sg_pipeline_prepare(made, nullptr));
}

TEST_P(pipelines, refuse_wrong_use) {
  network net(context_, {});
  const doubles input = net.input(0);
  doubles result(net.result_size());
  const auto refused = [&](const char *names, sg_status status, sg_status expected = SG_STATUS_INVALID_ARGUMENT) {
    EXPECT_STREQ(sg_status_name(expected), sg_status_name(status));
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), names)) << sg_last_error_message();
  };
  refused("input is NULL", sg_pipeline_push(net, nullptr, result.data(), nullptr));
  refused("output is NULL", sg_pipeline_push(net, input.data(), nullptr, nullptr));
  refused("overlap", sg_pipeline_push(net, result.data(), result.data() + 1, nullptr));
  ASSERT_OK(sg_pipeline_prepare(net, nullptr));
  sg_stage_desc desc = SG_STAGE_DESC_INIT;
  desc.output_bytes = 8;
  sg_stage stage = SG_STAGE_INIT;
  refused("prepared", sg_pipeline_add_stage(net, &desc, &stage), SG_STATUS_BUSY);
  refused("pipeline", sg_pipeline_push(nullptr, input.data(), result.data(), nullptr), SG_STATUS_INVALID_HANDLE);

  pipeline other;
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  options.input_bytes = 8;
  ASSERT_OK(sg_pipeline_create(context_, &options, other.out()));
  ASSERT_OK(sg_pipeline_add_stage(other, &desc, &stage));
  refused("a stage of a pipeline", sg_graph_run_async(stage.graph, nullptr, nullptr));
  // A copy of 16 bytes from a buffer of 8: it would reach into the next one.
  sg_submit submit = SG_SUBMIT_INIT;
  submit.graph = stage.graph;
  double target[2];
  const sg_status copied =
      sg_copy_async(context_, target, static_cast<const char *>(stage.input) + 4, 8, &submit, nullptr);
  EXPECT_EQ(SG_STATUS_OK, copied);
  refused("beyond the ends", sg_pipeline_prepare(other, nullptr));
}

// Seconds from the end of one batch to the end of the next, once the pipeline is full.
double measured_seconds_per_batch(sg_context *on, const network &net) {
  constexpr unsigned count = 24;
  std::vector<std::unique_ptr<placed>> inputs, results;
  for (unsigned i = 0; i < count; ++i) {
    inputs.push_back(std::make_unique<placed>(on, SG_MEMORY_PINNED, net.input(i)));
    results.push_back(std::make_unique<placed>(on, SG_MEMORY_PINNED, doubles(net.result_size())));
  }
  std::vector<job> jobs(count);
  for (unsigned i = 0; i < count; ++i)
    EXPECT_OK(sg_pipeline_push_async(net, inputs[i]->data(), results[i]->data(), nullptr, jobs[i].out()));
  std::vector<double> ends;
  for (unsigned i = 0; i < count; ++i) {
    EXPECT_OK(sg_job_wait(jobs[i], SG_FOREVER, nullptr));
    sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
    EXPECT_OK(sg_job_get_statistics(jobs[i], &statistics));
    ends.push_back(double(statistics.end_ns) * 1e-9);
  }
  return (ends[count - 1] - ends[count / 2 - 1]) / double(count - count / 2);
}

// The simulated device's clock is virtual: what was predicted is what it measures. Transfers dominate, or the work
// does.
TEST(pipelines_in_virtual_time, the_prediction_is_what_is_measured) {
  if (std::getenv("SG_TEST_DEVICE")) GTEST_SKIP() << "another device is under test";
  for (const std::size_t rows : {4, 64, sanitized ? 128 : 1536}) {
    SCOPED_TRACE(rows);
    context on = open_context("sim:h200", 0, 0);
    network_options options;
    options.widths.assign(7, 256);
    options.rows = rows;
    options.place = SG_WEIGHTS_STREAMED;
    options.weights = SG_MEMORY_PINNED;
    options.pipeline.batches_in_flight = 40;
    const network net(on, options);
    sg_pipeline_info info = SG_PIPELINE_INFO_INIT;
    ASSERT_OK(sg_pipeline_prepare(net, &info));
    const double measured = measured_seconds_per_batch(on, net);
    EXPECT_NEAR(1, measured / info.seconds_per_batch, 0.1) << measured << " against " << info.seconds_per_batch;
  }
}

TEST(pipelines_in_virtual_time, two_devices_stream_in_half_the_time) {
  if (std::getenv("SG_TEST_DEVICE")) GTEST_SKIP() << "another device is under test";
  const auto measured_on = [](const std::vector<std::int32_t> &devices) {
    context on = open_context("sim:h200x2", 0, 0);
    network_options options;
    options.widths.assign(7, 512);
    options.rows = 4;
    options.place = SG_WEIGHTS_STREAMED;
    options.weights = SG_MEMORY_PINNED;
    options.pipeline.batches_in_flight = 40;
    options.devices = devices;
    const network net(on, options);
    return measured_seconds_per_batch(on, net);
  };
  const double alone = measured_on({0});
  EXPECT_LE(measured_on({0, 0, 0, 1, 1, 1}), alone / 1.8);
}

// A file with a simulated machine whose GEMMs fill the chip and take long, although they are quick to compute.
class slow_machine {
 public:
  explicit slow_machine(const char *of) {
    std::string text(1 << 17, '\0');
    EXPECT_OK(sg_context_machine(open_context(of, 0, 0), text.data(), text.size(), nullptr));
    text.resize(std::strlen(text.c_str()));
    for (const auto &[key, value] : {std::pair("units", "1"), {"spared_units", "0"}, {"flops_per_second", "1e11"}})
      text = std::regex_replace(text, std::regex(std::string("\"") + key + "\": *[0-9.e+]+"),
                                std::string("\"") + key + "\": " + value);
    std::ofstream(file_) << text;
  }
  ~slow_machine() { std::filesystem::remove(file_); }
  slow_machine(const slow_machine &) = delete;
  std::string name() const { return "sim:" + file_; }

 private:
  const std::string file_ = std::filesystem::temp_directory_path() / ("sg-slow-" + std::to_string(getpid()) + ".json");
};

// Stages go forth and back between devices. Batches are long enough that their commands are not the limit, which the
// simulated device does not have.
TEST(pipelines_in_virtual_time, predictions_of_several_devices_hold) {
  if (std::getenv("SG_TEST_DEVICE")) GTEST_SKIP() << "another device is under test";
  std::mt19937 random(20261129);
  const auto below = [&](std::size_t limit) { return std::size_t(random() % limit); };
  for (int i = 0; i < (sanitized ? 4 : 30); ++i) {
    const std::size_t devices = below(3) == 0 ? 4 : 2;
    const slow_machine machine(devices == 4 ? "sim:h200x4" : "sim:h200x2");
    context on = open_context(machine.name().c_str(), 0, 0);
    network_options options;
    options.widths.assign(3 + below(5), 128 << below(3));
    options.rows = std::size_t(16) << below(4);
    options.place = below(2) == 0 ? SG_WEIGHTS_STREAMED : SG_WEIGHTS_RESIDENT;
    options.weights = SG_MEMORY_PINNED;
    options.pipeline.batches_in_flight = 40;
    if (below(2) == 0) options.pipeline.depth = 1 + std::int32_t(below(4));
    options.devices.clear();
    for (std::size_t d = 0; d + 1 < options.widths.size(); ++d) options.devices.push_back(std::int32_t(below(devices)));
    std::ostringstream drawn;
    drawn << "case " << i << ": " << options.widths.size() - 1 << " stages of " << options.widths[0] << ", "
          << options.rows << " rows, place " << options.place << ", depth " << options.pipeline.depth << ", devices";
    for (const std::int32_t each : options.devices) drawn << " " << each;
    SCOPED_TRACE(drawn.str());
    const network net(on, options);
    sg_pipeline_info info = SG_PIPELINE_INFO_INIT;
    ASSERT_OK(sg_pipeline_prepare(net, &info));
    // When the host sees a batch's end depends on its threads, and with that when the next one begins.
    double closest = HUGE_VAL;
    for (int again = 0; again < 12 && std::abs(closest - 1) > 0.15; ++again) {
      const double ratio = measured_seconds_per_batch(on, net) / info.seconds_per_batch;
      if (std::abs(ratio - 1) < std::abs(closest - 1)) closest = ratio;
    }
    EXPECT_NEAR(1, closest, 0.15) << "of " << info.seconds_per_batch;
  }
}

// SG_TEST_SEVERAL names other devices than the simulated ones, at least two of them: "cuda:0,1".
const char *several_devices() {
  const char *const asked = std::getenv("SG_TEST_SEVERAL");
  return asked ? asked : "sim:h200x2";
}

context checked_context(const char *device) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = device;
  options.flags = SG_CONTEXT_CHECK_HAZARDS;
  context made;
  EXPECT_OK(sg_context_create(&options, made.out()));
  return made;
}

// The ends of batches in the memory of each device, and of the host.
TEST(pipelines_on_several_devices, have_the_results_of_one) {
  const context on = checked_context(several_devices());
  const std::vector<std::vector<std::int32_t>> all = {{1}, {0, 1}, {1, 0}, {0, 0, 1, SG_DEVICE_ANY}};
  for (const auto &devices : all)
    for (const sg_weights_place place : {SG_WEIGHTS_RESIDENT, SG_WEIGHTS_STREAMED})
      for (const sg_memory_kind weights : memory_kinds) {
        SCOPED_TRACE(testing::Message() << "weights " << weights << " place " << place << " " << devices.size());
        network_options options;
        options.widths = {5, 7, 4, 6, 3};
        options.weights = weights;
        options.weights_device = 1;
        options.place = place;
        options.devices = devices;
        const network net(on, options);
        std::vector<std::unique_ptr<placed>> inputs, results;
        std::vector<job> jobs(8);
        for (unsigned i = 0; i < jobs.size(); ++i) {
          const sg_memory_kind ends = memory_kinds[i % std::size(memory_kinds)];
          inputs.push_back(std::make_unique<placed>(on, ends, net.input(i), static_cast<std::int32_t>(i / 4)));
          results.push_back(
              std::make_unique<placed>(on, ends, doubles(net.result_size(), -1), static_cast<std::int32_t>(i % 2)));
          ASSERT_OK(sg_pipeline_push_async(net, inputs[i]->data(), results[i]->data(), nullptr, jobs[i].out()));
        }
        for (unsigned i = 0; i < jobs.size(); ++i) {
          ASSERT_OK(sg_job_wait(jobs[i], SG_FOREVER, nullptr));
          EXPECT_EQ(net.expected(i), results[i]->values()) << "batch " << i;
        }
      }
}

TEST(pipelines_on_several_devices, say_what_is_where) {
  const context on = open_context(several_devices());
  network_options options;
  options.widths = {64, 64, 64, 64};
  options.place = SG_WEIGHTS_STREAMED;
  options.weights = SG_MEMORY_PINNED;
  options.pipeline.depth = options.pipeline.weight_buffers = 1;
  options.devices = {0, 1, 1};
  const network net(on, options);
  char text[4096] = "";
  ASSERT_OK(sg_pipeline_describe(net, text, sizeof text, nullptr));
  EXPECT_NE(nullptr, std::strstr(text, "device 0: 1 stage, ")) << text;
  EXPECT_NE(nullptr, std::strstr(text, "device 1: 2 stages, ")) << text;
  sg_pipeline_info info = SG_PIPELINE_INFO_INIT;
  ASSERT_OK(sg_pipeline_prepare(net, &info));
  EXPECT_EQ(std::uint64_t{3 * 64 * 64 * sizeof(double)}, info.streamed_bytes);
  // Of each device an input and a weight buffer; an output of the first, two of the second.
  const std::uint64_t batch = 3 * 64 * sizeof(double);
  EXPECT_EQ(5 * batch + 2 * 64 * 64 * sizeof(double), info.device_bytes);
}

TEST(pipelines_on_several_devices, limit_the_memory_of_each) {
  const context on = open_context(several_devices());
  network_options options;
  options.widths = {64, 64, 64};
  options.place = SG_WEIGHTS_RESIDENT;
  options.devices = {0, 1};
  options.pipeline.memory_limit = 64 * 64 * sizeof(double) + 16384;  // one stage's weights, not both
  EXPECT_OK(sg_pipeline_prepare(network(on, options), nullptr));
  options.devices = {1};
  EXPECT_STATUS(SG_STATUS_OUT_OF_MEMORY, sg_pipeline_prepare(network(on, options), nullptr));
}

TEST(pipelines_on_several_devices, wrong_ones_are_refused_by_name) {
  const context on = open_context(several_devices());
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  options.input_bytes = 8;
  pipeline made;
  ASSERT_OK(sg_pipeline_create(on, &options, made.out()));
  sg_stage stage = SG_STAGE_INIT;
  std::int32_t count = 0;
  ASSERT_OK(sg_context_device_count(on, &count));
  for (const std::int32_t wrong : {count, -2}) {
    sg_stage_desc desc = SG_STAGE_DESC_INIT;
    desc.output_bytes = 8;
    desc.device = wrong;
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_pipeline_add_stage(made, &desc, &stage));
    const std::string expected = "desc->device is " + std::to_string(wrong) + "; the context's devices are 0 to " +
                                 std::to_string(count - 1) + ", and -1 is any";
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), expected.c_str())) << sg_last_error_message();
  }
  sg_stage_desc desc = SG_STAGE_DESC_INIT;
  desc.output_bytes = 8;
  desc.reserved = 1;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_pipeline_add_stage(made, &desc, &stage));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "desc->reserved")) << sg_last_error_message();
}

// Of batches of a device that is lost each fails or has the right result; other stages' device goes on.
TEST(pipelines_on_several_devices, survive_the_loss_of_one) {
  if (std::getenv("SG_TEST_SEVERAL")) GTEST_SKIP() << "other devices are under test";
  int failed = 0;
  for (int at = 1; at < 24; at += 3) {
    const std::string name = "sim:h200x2?d1.lost-at=" + std::to_string(at);
    SCOPED_TRACE(name);
    const context on = open_context(name.c_str());
    network_options options;
    options.devices = {0, 1};
    options.place = at % 2 ? SG_WEIGHTS_STREAMED : SG_WEIGHTS_RESIDENT;
    const network net(on, options);
    std::vector<doubles> inputs, results(6, doubles(net.result_size()));
    std::vector<job> jobs(results.size());
    for (unsigned i = 0; i < jobs.size(); ++i) {
      inputs.push_back(net.input(i));
      if (sg_pipeline_push_async(net, inputs[i].data(), results[i].data(), nullptr, jobs[i].out()) != SG_STATUS_OK) {
        EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "is lost")) << sg_last_error_message();
        ++failed;
        break;
      }
    }
    for (unsigned i = 0; i < jobs.size() && jobs[i]; ++i) {
      const sg_status status = sg_job_wait(jobs[i], SG_FOREVER, nullptr);
      if (status == SG_STATUS_OK) {
        EXPECT_EQ(net.expected(i), results[i]) << "batch " << i;
      } else {
        EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, status);
        ++failed;
      }
    }
    network_options first;
    first.devices = {0};
    const network other(on, first);
    doubles result(other.result_size());
    ASSERT_OK(sg_pipeline_push(other, inputs[0].data(), result.data(), nullptr));
    EXPECT_EQ(other.expected(0), result);
  }
  EXPECT_GE(failed, 5);  // the first rounds lose the device before any batch is complete
}

// Each device streams over its own link, which is the limit.
TEST(pipelines_on_several_devices, are_predicted_to_stream_in_half_the_time) {
  if (std::getenv("SG_TEST_SEVERAL")) GTEST_SKIP() << "other devices are under test";
  const context on = open_context("sim:h200x2");
  const auto seconds_on = [&](const std::vector<std::int32_t> &devices, sg_memory_kind weights = SG_MEMORY_PINNED) {
    network_options options;
    options.widths.assign(9, 512);
    options.rows = 4;
    options.place = SG_WEIGHTS_STREAMED;
    options.weights = weights;
    options.devices = devices;
    const network net(on, options);
    sg_pipeline_info info = SG_PIPELINE_INFO_INIT;
    EXPECT_OK(sg_pipeline_prepare(net, &info));
    EXPECT_GT(info.transfer_in_seconds, info.work_seconds);
    return info.seconds_per_batch;
  };
  const double alone = seconds_on({0});
  EXPECT_LE(seconds_on({0, 0, 0, 0, 1, 1, 1, 1}), alone / 1.8);
  EXPECT_LE(seconds_on({0, 1}), alone / 1.8);
  EXPECT_NEAR(1, seconds_on({1}) / alone, 1e-6);
  // Staging, by the host's threads for both, is the limit.
  EXPECT_LE(seconds_on({0, 0, 0, 0, 1, 1, 1, 1}, SG_MEMORY_PAGEABLE), seconds_on({0}, SG_MEMORY_PAGEABLE));
}

std::string description_of(const network &net) {
  char text[4096] = "";
  EXPECT_OK(sg_pipeline_describe(net, text, sizeof text, nullptr));
  return text;
}

// Stages that name no device.
TEST(pipelines_on_several_devices, are_placed_where_they_stream_fastest) {
  if (std::getenv("SG_TEST_SEVERAL")) GTEST_SKIP() << "other devices are under test";
  const auto seconds_of = [](const char *name, const std::vector<std::int32_t> &devices, std::string &text) {
    const context on = checked_context(name);
    network_options options;
    options.widths.assign(9, 512);
    options.rows = 4;
    options.place = SG_WEIGHTS_STREAMED;
    options.weights = SG_MEMORY_PINNED;
    options.devices = devices;
    options.relu_apart = true;
    const network net(on, options);
    sg_pipeline_info info = SG_PIPELINE_INFO_INIT;
    EXPECT_OK(sg_pipeline_prepare(net, &info));
    text = description_of(net);
    std::vector<doubles> inputs, results(5, doubles(net.result_size()));
    std::vector<job> jobs(results.size());
    for (unsigned i = 0; i < jobs.size(); ++i) {
      inputs.push_back(net.input(i));
      EXPECT_OK(sg_pipeline_push_async(net, inputs[i].data(), results[i].data(), nullptr, jobs[i].out()));
    }
    for (unsigned i = 0; i < jobs.size(); ++i) {
      EXPECT_OK(sg_job_wait(jobs[i], SG_FOREVER, nullptr));
      EXPECT_EQ(net.expected(i), results[i]) << "batch " << i;
    }
    return info.seconds_per_batch;
  };
  std::string text;
  const double alone = seconds_of("sim:h200", {0}, text);
  EXPECT_LE(seconds_of("sim:h200x2", {SG_DEVICE_ANY}, text), 0.6 * alone);
  EXPECT_NE(std::string::npos, text.find("device 0: 4 stages")) << text;
  EXPECT_NE(std::string::npos, text.find("device 1: 4 stages")) << text;
  // One stage is named: the others are placed around it.
  const std::int32_t any = SG_DEVICE_ANY;
  EXPECT_LE(seconds_of("sim:h200x2", {1, any, any, any, any, any, any, any}, text), 0.6 * alone);
  EXPECT_NE(std::string::npos, text.find("device 1: 4 stages")) << text;
}

// What links share may be slower than each of them: that is no staging.
TEST(pipelines_on_several_devices, say_whether_staging_is_the_limit) {
  if (std::getenv("SG_TEST_SEVERAL")) GTEST_SKIP() << "other devices are under test";
  const context on = open_context("sim:h200x4");
  network_options options;
  options.widths.assign(9, 512);
  options.rows = 4;
  options.place = SG_WEIGHTS_STREAMED;
  for (const sg_memory_kind weights : {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE}) {
    options.weights = weights;
    const std::string text = description_of(network(on, options));
    const char *const limit = weights == SG_MEMORY_PINNED ? "the link is the limit" : "staging is the limit";
    EXPECT_NE(std::string::npos, text.find(limit)) << text;
  }
}

TEST(pipelines_on_several_devices, stay_on_one_where_little_is_gained) {
  if (std::getenv("SG_TEST_SEVERAL")) GTEST_SKIP() << "other devices are under test";
  const context on = open_context("sim:h200x2");
  network_options options;
  options.widths.assign(9, 64);
  options.place = SG_WEIGHTS_RESIDENT;
  const network small(on, options);
  EXPECT_EQ(std::string::npos, description_of(small).find("device 1")) << description_of(small);
}

// Weights of all stages fit in two devices' memory, not in one's.
TEST(pipelines_on_several_devices, are_placed_where_their_weights_fit) {
  if (std::getenv("SG_TEST_SEVERAL")) GTEST_SKIP() << "other devices are under test";
  const context on = open_context("sim:h200x2");
  network_options options;
  options.widths.assign(5, 64);
  options.place = SG_WEIGHTS_RESIDENT;
  options.pipeline.memory_limit = 2 * 64 * 64 * sizeof(double) + 16384;
  const network net(on, options);
  const std::string text = description_of(net);
  EXPECT_NE(std::string::npos, text.find("device 0: 2 stages")) << text;
  EXPECT_NE(std::string::npos, text.find("device 1: 2 stages")) << text;
  doubles input = net.input(0), result(net.result_size());
  ASSERT_OK(sg_pipeline_push(net, input.data(), result.data(), nullptr));
  EXPECT_EQ(net.expected(0), result);
}

// A machine whose second device has less memory than one stage needs.
TEST(pipelines_on_several_devices, are_not_placed_where_there_is_too_little_memory) {
  if (std::getenv("SG_TEST_SEVERAL")) GTEST_SKIP() << "other devices are under test";
  const std::string file = std::filesystem::temp_directory_path() / ("sg-small-" + std::to_string(getpid()) + ".json");
  std::string text(1 << 17, '\0');
  EXPECT_OK(sg_context_machine(open_context("sim:h200x2"), text.data(), text.size(), nullptr));
  text.resize(std::strlen(text.c_str()));
  // Of one entry for both, {"model": {...}, "count": 2}.
  const std::size_t model = text.find('{', text.find("\"model\"")), count = text.find("\"count\"");
  const std::string given = text.substr(model, text.rfind('}', count) + 1 - model);
  const std::string small =
      std::regex_replace(given, std::regex("\"memory_bytes\": *[0-9.e+]+"), "\"memory_bytes\": 1048576");
  text.replace(model, text.find('}', count) - model, given + "}, {\"model\": " + small);
  std::ofstream(file) << text;
  const context on = open_context(("sim:" + file).c_str());
  network_options options;
  options.widths.assign(9, 512);
  options.rows = 4;
  options.place = SG_WEIGHTS_STREAMED;
  options.weights = SG_MEMORY_PINNED;
  const network net(on, options);
  EXPECT_EQ(std::string::npos, description_of(net).find("device 1:")) << description_of(net);
  doubles input = net.input(0), result(net.result_size());
  ASSERT_OK(sg_pipeline_push(net, input.data(), result.data(), nullptr)) << sg_last_error_message();
  EXPECT_EQ(net.expected(0), result);
  std::filesystem::remove(file);
}

// Weights in a device's memory are used there, and nothing is moved away from them.
TEST(pipelines_on_several_devices, are_not_moved_from_their_memory) {
  if (std::getenv("SG_TEST_SEVERAL")) GTEST_SKIP() << "other devices are under test";
  const context on = open_context("sim:h200x2");
  network_options options;
  options.widths.assign(9, 512);
  options.rows = 4;
  options.weights = SG_MEMORY_DEVICE;
  const network net(on, options);
  EXPECT_EQ(std::string::npos, description_of(net).find("device 1:"));
}

// A function is called for each batch, and records for the device that the stage was placed on.
TEST(pipelines_on_several_devices, functions_record_for_the_device_of_their_stage) {
  if (std::getenv("SG_TEST_SEVERAL")) GTEST_SKIP() << "other devices are under test";
  const context on = open_context("sim:h200x2");
  constexpr std::size_t n = 512, stages = 4, rows = 4;
  struct stage_work {
    sg_context *on;
    std::int64_t batches = 0;
  } work{on};
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  options.input_bytes = rows * n * sizeof(double);
  pipeline made;
  ASSERT_OK(sg_pipeline_create(on, &options, made.out()));
  void *memory = nullptr;
  ASSERT_OK(sg_host_alloc(on, stages * n * n * sizeof(double), &memory));
  double *const weights = static_cast<double *>(memory);
  const doubles values = integers(stages * n * n, 9);
  std::copy(values.begin(), values.end(), weights);
  for (std::size_t s = 0; s < stages; ++s) {
    const sg_weight weight = {weights + s * n * n, n * n * sizeof(double)};
    sg_stage_desc desc = SG_STAGE_DESC_INIT;
    desc.output_bytes = options.input_bytes;
    desc.weights = &weight;
    desc.weight_count = 1;
    desc.place = SG_WEIGHTS_STREAMED;
    desc.function = [](const sg_stage *stage, void *user) {
      auto &given = *static_cast<stage_work *>(user);
      given.batches += stage->batch >= 0;
      sg_gemm_desc gemm =
          make_gemm(static_cast<const double *>(stage->input), static_cast<double *>(stage->weights[0]),
                    static_cast<double *>(stage->output), std::int64_t(rows), std::int64_t(n), std::int64_t(n));
      gemm.activation = SG_ACTIVATION_RELU;
      sg_submit submit = SG_SUBMIT_INIT;
      submit.graph = stage->graph;
      return sg_gemm_async(given.on, &gemm, &submit, nullptr);
    };
    desc.user = &work;
    sg_stage stage = SG_STAGE_INIT;
    ASSERT_OK(sg_pipeline_add_stage(made, &desc, &stage));
  }
  char text[4096] = "";
  ASSERT_OK(sg_pipeline_describe(made, text, sizeof text, nullptr));
  EXPECT_NE(nullptr, std::strstr(text, "device 1: 2 stages")) << text;
  for (unsigned batch = 0; batch < 3; ++batch) {
    doubles x = integers(rows * n, 200 + batch), result(rows * n);
    ASSERT_OK(sg_pipeline_push(made, x.data(), result.data(), nullptr)) << sg_last_error_message();
    for (std::size_t s = 0; s < stages; ++s)
      x = sg_reference::dense_relu(x, doubles(weights + s * n * n, weights + (s + 1) * n * n), rows, n, n);
    EXPECT_EQ(x, result) << "batch " << batch;
  }
  EXPECT_EQ(std::int64_t{3 * stages}, work.batches);
  EXPECT_OK(made.reset());
  EXPECT_OK(sg_host_free(on, memory));
}

// A device is lost: batches through it fail, those of another pipeline go on, and a new one is on the other devices.
TEST(pipelines_on_several_devices, are_placed_on_what_is_left) {
  if (std::getenv("SG_TEST_SEVERAL")) GTEST_SKIP() << "other devices are under test";
  const context on = open_context("sim:h200x2?d1.lost-at=60");
  network_options spread;
  spread.widths.assign(9, 512);
  spread.place = SG_WEIGHTS_STREAMED;
  spread.weights = SG_MEMORY_PINNED;
  network_options first;
  first.devices = {0};
  const network over_both(on, spread), on_first(on, first);
  EXPECT_NE(std::string::npos, description_of(over_both).find("device 1: "));
  int failed = 0;
  for (unsigned i = 0; i < 12; ++i) {
    doubles input = over_both.input(i), result(over_both.result_size());
    const sg_status status = sg_pipeline_push(over_both, input.data(), result.data(), nullptr);
    if (status == SG_STATUS_OK) {
      EXPECT_EQ(over_both.expected(i), result);
      EXPECT_EQ(0, failed) << "a device is lost for good";
    } else {
      EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, status);
      ++failed;
    }
    doubles other = on_first.input(i), other_result(on_first.result_size());
    ASSERT_OK(sg_pipeline_push(on_first, other.data(), other_result.data(), nullptr));
    EXPECT_EQ(on_first.expected(i), other_result);
  }
  EXPECT_GT(failed, 0);
  EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, sg_context_device_status(on, 1));
  const network later(on, spread);
  EXPECT_EQ(std::string::npos, description_of(later).find("device 1:"));
  doubles input = later.input(0), result(later.result_size());
  ASSERT_OK(sg_pipeline_push(later, input.data(), result.data(), nullptr));
  EXPECT_EQ(later.expected(0), result);
}

ON_EACH_DEVICE(pipelines);

}  // namespace
}  // namespace sg_test
