// SPDX-License-Identifier: Apache-2.0
// Pipelines with replicas: results, shared streams of weights, lost devices, memory, predictions, refused calls.
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "support/harness.hpp"
#include "support/pipeline_network.hpp"
#include "support/sanitizers.hpp"

namespace sg_test {
namespace {

// SG_TEST_SEVERAL names other devices than the simulated ones: "cuda:0,1".
const char *asked() { return std::getenv("SG_TEST_SEVERAL"); }

std::vector<std::string> machines() {
  if (asked()) return {asked()};
  if (sanitized) return {"sim:h200x2"};
  return {"sim:h200x2", "sim:h200x4", "sim:pcie4x2"};
}

context checked_context(const std::string &device) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = device.c_str();
  options.flags = SG_CONTEXT_CHECK_HAZARDS;
  context made;
  EXPECT_OK(sg_context_create(&options, made.out()));
  return made;
}

std::int32_t devices_of(const context &on) {
  std::int32_t count = 0;
  EXPECT_OK(sg_context_device_count(on, &count));
  return count;
}

network_options replicated(sg_weights_place place, std::size_t layers = 4, std::size_t width = 7) {
  network_options options;
  options.widths.assign(layers + 1, width);
  options.place = place;
  options.pipeline.replicas = SG_REPLICAS_BATCHES;
  options.pipeline.batches_in_flight = 40;
  return options;
}

std::uint64_t inputs_bytes(const network_options &of) { return of.rows * of.widths[0] * sizeof(double); }

sg_pipeline_info info_of(const network &net) {
  sg_pipeline_info info = SG_PIPELINE_INFO_INIT;
  EXPECT_OK(sg_pipeline_prepare(net, &info)) << sg_last_error_message();
  return info;
}

// Batches with their ends in memory of the given kinds, one after the other.
class batches {
 public:
  batches(const context &on, const network &net, unsigned count, const std::vector<sg_memory_kind> &kinds)
      : net_(net), jobs(count) {
    const std::int32_t devices = devices_of(on);
    for (unsigned i = 0; i < count; ++i) {
      const sg_memory_kind kind = kinds[i % kinds.size()];
      inputs.push_back(std::make_unique<placed>(on, kind, net.input(i), static_cast<std::int32_t>(i / 3) % devices));
      results.push_back(
          std::make_unique<placed>(on, kind, doubles(net.result_size(), -1), static_cast<std::int32_t>(i) % devices));
    }
  }
  sg_status push(unsigned i) {
    return sg_pipeline_push_async(net_, inputs[i]->data(), results[i]->data(), nullptr, jobs[i].out());
  }
  sg_status push_at_once(unsigned begin, unsigned count, const sg_submit *submit = nullptr, sg_job **whole = nullptr) {
    std::vector<const void *> from;
    std::vector<void *> to;
    std::vector<sg_job *> made(count);
    for (unsigned i = begin; i < begin + count; ++i) {
      from.push_back(inputs[i]->data());
      to.push_back(results[i]->data());
    }
    const sg_status status = sg_pipeline_push_batches_async(net_, static_cast<std::int32_t>(count), from.data(),
                                                            to.data(), submit, made.data(), whole);
    for (unsigned i = 0; i < count; ++i)
      if (made[i]) *jobs[begin + i].out() = made[i];
    return status;
  }
  void check(unsigned i) {
    ASSERT_OK(sg_job_wait(jobs[i], SG_FOREVER, nullptr)) << "batch " << i;
    EXPECT_EQ(net_.expected(i), results[i]->values()) << "batch " << i;
  }
  void check_all() {
    for (unsigned i = 0; i < jobs.size(); ++i) check(i);
  }

 private:
  const network &net_;

 public:
  std::vector<job> jobs;
  std::vector<std::unique_ptr<placed>> inputs, results;
};

sg_submit submit_after(sg_job *const &first) {
  sg_submit made = SG_SUBMIT_INIT;
  made.after = &first;
  made.after_count = 1;
  return made;
}

TEST(replicas, have_the_results_of_one) {
  for (const std::string &machine : machines()) {
    const context on = checked_context(machine);
    const std::int32_t devices = devices_of(on);
    for (const sg_weights_place place : {SG_WEIGHTS_RESIDENT, SG_WEIGHTS_STREAMED})
      for (const sg_memory_kind weights : {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE})
        for (const std::size_t width : {std::size_t{7}, std::size_t{170}}) {  // whole weights, and parts
          SCOPED_TRACE(testing::Message() << machine << ", weights " << weights << " place " << place << ", " << width);
          network_options options = replicated(place, 4, width);
          options.weights = weights;
          const network net(on, options);
          EXPECT_EQ(devices, info_of(net).replicas);
          batches given(on, net, 17, {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE, SG_MEMORY_DEVICE});
          ASSERT_OK(given.push(0));
          ASSERT_OK(given.push_at_once(1, 9));
          ASSERT_OK(given.push(10));
          ASSERT_OK(given.push(11));
          ASSERT_OK(given.push_at_once(12, 5));
          given.check_all();
        }
  }
}

TEST(replicas, every_number_of_buffers_gives_the_same_results) {
  const context on = checked_context(machines()[0]);
  for (std::int32_t depth = 1; depth <= 3; ++depth)
    for (std::int32_t buffers = 1; buffers <= 3; ++buffers) {
      SCOPED_TRACE(testing::Message() << depth << " batches, " << buffers << " weight buffers");
      network_options options = replicated(SG_WEIGHTS_STREAMED, 5, 130);
      options.weights = SG_MEMORY_PINNED;
      options.pipeline.depth = depth;
      options.pipeline.weight_buffers = buffers;
      const network net(on, options);
      const sg_pipeline_info info = info_of(net);
      EXPECT_EQ(depth, info.depth);
      EXPECT_EQ(buffers, info.weight_buffers);
      batches given(on, net, 12, {SG_MEMORY_PINNED});
      ASSERT_OK(given.push_at_once(0, 6));
      for (unsigned i = 6; i < 12; ++i) ASSERT_OK(given.push(i));
      given.check_all();
    }
}

// Weights come from the host once: resident ones when the pipeline is prepared, and streamed ones of batches that are
// pushed at once. One that is pushed alone copies them itself.
TEST(replicas, share_what_comes_from_the_host) {
  const context on = open_context(machines()[0].c_str());
  const auto devices = static_cast<std::uint64_t>(devices_of(on));
  const auto copied_from_host = [&] {
    sg_context_metrics metrics = SG_CONTEXT_METRICS_INIT;
    EXPECT_OK(sg_context_get_metrics(on, &metrics));
    return metrics.bytes_in;
  };
  constexpr std::size_t layers = 6, width = 768;
  constexpr std::uint64_t weights = layers * width * width * sizeof(double), input = width * sizeof(double);
  for (const sg_weights_place place : {SG_WEIGHTS_RESIDENT, SG_WEIGHTS_STREAMED}) {
    SCOPED_TRACE(place);
    network_options options = replicated(place, layers, width);
    options.weights = SG_MEMORY_PINNED;
    options.rows = 1;
    const network net(on, options);
    std::uint64_t before = copied_from_host();
    const sg_pipeline_info info = info_of(net);
    const bool is_resident = place == SG_WEIGHTS_RESIDENT;
    if (asked() && !is_resident && !info.shares_weights) GTEST_SKIP() << "these devices share no weights of this size";
    EXPECT_EQ(is_resident ? weights : 0, copied_from_host() - before);
    EXPECT_EQ(is_resident ? weights : 0, info.resident_bytes);
    EXPECT_EQ(is_resident ? 0 : weights, info.streamed_bytes);
    EXPECT_EQ(is_resident ? 0 : 1, info.shares_weights);
    const auto count = static_cast<unsigned>(2 * devices);
    batches given(on, net, count + 1, {SG_MEMORY_PINNED});
    before = copied_from_host();
    ASSERT_OK(given.push_at_once(0, count));
    for (unsigned i = 0; i < count; ++i) given.check(i);
    EXPECT_EQ(count * input + (is_resident ? 0 : 2 * weights), copied_from_host() - before);
    ASSERT_OK(given.push(count));
    given.check(count);
    for (unsigned i = 0; i <= count; ++i) {
      sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
      ASSERT_OK(sg_job_get_statistics(given.jobs[i], &statistics));
      EXPECT_EQ(input + (i < count || is_resident ? 0 : weights), statistics.bytes_in) << "batch " << i;
    }
  }
}

TEST(replicas, go_round_the_devices) {
  const context on = open_context(machines()[0].c_str());
  const std::int32_t devices = devices_of(on);
  const network net(on, replicated(SG_WEIGHTS_RESIDENT));
  batches given(on, net, 8, {SG_MEMORY_PINNED});
  for (unsigned i = 0; i < 8; ++i) {
    ASSERT_OK(given.push(i));
    given.check(i);
    sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
    ASSERT_OK(sg_job_get_statistics(given.jobs[i], &statistics));
    EXPECT_EQ(std::uint64_t{1} << (i % static_cast<unsigned>(devices)), statistics.devices);
  }
}

TEST(replicas, are_complete_in_the_order_of_the_batches) {
  const context on = open_context(machines()[0].c_str());
  network_options options = replicated(SG_WEIGHTS_STREAMED, 3, 64);
  options.pipeline.batches_in_flight = 40;
  const network net(on, options);
  batches given(on, net, 24, {SG_MEMORY_PAGEABLE});
  for (unsigned i = 0; i < 24; i += 6) {
    ASSERT_OK(given.push_at_once(i, 4));
    ASSERT_OK(given.push(i + 4));
    ASSERT_OK(given.push(i + 5));
  }
  for (unsigned last = 24; last-- > 0;) {
    given.check(last);
    for (unsigned i = 0; i < last; ++i) {
      EXPECT_OK(sg_job_query(given.jobs[i], nullptr)) << "batch " << i;
    }
  }
}

// Batches of one call wait for each other where one reads what another writes.
TEST(replicas, batches_at_once_may_depend_on_each_other) {
  const context on = open_context(machines()[0].c_str());
  const network net(on, replicated(SG_WEIGHTS_STREAMED, 3, 64));
  doubles first = net.input(0), second(net.result_size()), third(net.result_size()), fourth(net.result_size());
  const void *const inputs[] = {first.data(), second.data(), third.data(), first.data()};
  void *const outputs[] = {second.data(), third.data(), fourth.data(), fourth.data()};
  job whole;
  ASSERT_OK(sg_pipeline_push_batches_async(net, 4, inputs, outputs, nullptr, nullptr, whole.out()));
  EXPECT_OK(sg_job_wait(whole, SG_FOREVER, nullptr));
  EXPECT_EQ(net.expected(0), second);
  EXPECT_EQ(net.expected(0), fourth);
  EXPECT_NE(second, third);
}

// Stages that use memory of the application order the batches, also those that are pushed at once.
TEST(replicas, batches_at_once_depend_by_memory_of_the_application) {
  const context on = open_context(machines()[0].c_str());
  constexpr std::size_t n = 256;
  const placed state(on, SG_MEMORY_PINNED, doubles(n, 0));
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  options.input_bytes = n * sizeof(double);
  options.replicas = SG_REPLICAS_BATCHES;
  options.batches_in_flight = 16;
  pipeline made;
  ASSERT_OK(sg_pipeline_create(on, &options, made.out()));
  sg_stage_desc desc = SG_STAGE_DESC_INIT;
  desc.output_bytes = options.input_bytes;
  sg_stage stage = SG_STAGE_INIT;
  sg_submit submit = SG_SUBMIT_INIT;
  // The first stage keeps its input, and the second one adds what was kept.
  ASSERT_OK(sg_pipeline_add_stage(made, &desc, &stage));
  submit.graph = stage.graph;
  ASSERT_OK(sg_copy_async(on, state.data(), stage.input, options.input_bytes, &submit, nullptr));
  ASSERT_OK(sg_copy_async(on, stage.output, stage.input, options.input_bytes, &submit, nullptr));
  ASSERT_OK(sg_pipeline_add_stage(made, &desc, &stage));
  submit.graph = stage.graph;
  ASSERT_OK(sg_copy_async(on, stage.output, state.data(), options.input_bytes, &submit, nullptr));
  sg_axpby_desc add = SG_AXPBY_DESC_INIT;
  add.a = {const_cast<void *>(stage.input), 1, n, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  add.c = {stage.output, 1, n, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  add.alpha.re = add.beta.re = 1;
  ASSERT_OK(sg_axpby_async(on, &add, &submit, nullptr));
  std::vector<doubles> x, y(8, doubles(n));
  std::vector<const void *> inputs;
  std::vector<void *> outputs;
  for (unsigned i = 0; i < 8; ++i) {
    x.push_back(integers(n, i + 1));
    inputs.push_back(x[i].data());
    outputs.push_back(y[i].data());
  }
  ASSERT_OK(sg_pipeline_push_batches(made, 8, inputs.data(), outputs.data(), nullptr));
  for (unsigned i = 0; i < 8; ++i)
    for (std::size_t k = 0; k < n; ++k) ASSERT_EQ(2 * x[i][k], y[i][k]) << "batch " << i;
}

// A batch that is cancelled fails alone, and the job of all with it.
TEST(replicas, batches_at_once_fail_alone) {
  const context on = open_context(machines()[0].c_str());
  network_options options = replicated(SG_WEIGHTS_STREAMED, 4, 128);
  options.pipeline.batches_in_flight = 16;
  const network net(on, options);
  info_of(net);
  batches given(on, net, 8, {SG_MEMORY_PINNED});
  gated_job closed(on);
  SKIP_WITHOUT_GATE(closed);
  sg_job *const first = closed.get();
  const sg_submit behind = submit_after(first);
  job whole, second;
  ASSERT_OK(given.push_at_once(0, 4, &behind, whole.out()));
  ASSERT_OK(given.push_at_once(4, 4, nullptr, second.out()));
  EXPECT_OK(sg_job_cancel(given.jobs[1]));
  closed.open();
  for (unsigned i = 0; i < 8; ++i)
    if (i != 1) given.check(i);
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(given.jobs[1], SG_FOREVER, nullptr));
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(whole, SG_FOREVER, nullptr));
  EXPECT_OK(sg_job_wait(second, SG_FOREVER, nullptr));
}

// The job of all is complete when its batches are, and has their statistics.
TEST(replicas, batches_at_once_are_one_job) {
  const context on = open_context(machines()[0].c_str());
  const auto devices = static_cast<unsigned>(devices_of(on));
  network_options options = replicated(SG_WEIGHTS_STREAMED, 6, 768);
  options.weights = SG_MEMORY_PINNED;
  const network net(on, options);
  if (asked() && !info_of(net).shares_weights) GTEST_SKIP() << "these devices share no weights of this size";
  EXPECT_EQ(1, info_of(net).shares_weights);
  batches given(on, net, devices, {SG_MEMORY_PINNED});
  job whole;
  ASSERT_OK(given.push_at_once(0, devices, nullptr, whole.out()));
  ASSERT_OK(sg_job_wait(whole, SG_FOREVER, nullptr));
  for (const job &each : given.jobs) EXPECT_OK(sg_job_query(each, nullptr));
  given.check_all();
  sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
  ASSERT_OK(sg_job_get_statistics(whole, &statistics));
  EXPECT_EQ((std::uint64_t{1} << devices) - 1, statistics.devices);
  // Weights come from the host once, and go to the other devices.
  constexpr std::uint64_t weights = 6 * 768 * 768 * sizeof(double);
  EXPECT_EQ(weights + devices * inputs_bytes(options), statistics.bytes_in);
  EXPECT_EQ((devices - 1) * weights, statistics.bytes_peer);
}

// Cancelled as a whole, before any of it ran.
TEST(replicas, batches_at_once_are_cancelled_together) {
  const context on = open_context(machines()[0].c_str());
  const network net(on, replicated(SG_WEIGHTS_STREAMED, 4, 128));
  info_of(net);
  batches given(on, net, 5, {SG_MEMORY_PINNED});
  gated_job closed(on);
  SKIP_WITHOUT_GATE(closed);
  sg_job *const first = closed.get();
  const sg_submit behind = submit_after(first);
  job whole;
  ASSERT_OK(given.push_at_once(0, 4, &behind, whole.out()));
  EXPECT_OK(sg_job_cancel(whole));
  closed.open();
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(whole, SG_FOREVER, nullptr));
  for (unsigned i = 0; i < 4; ++i) EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(given.jobs[i], SG_FOREVER, nullptr));
  ASSERT_OK(given.push(4));
  given.check(4);
}

TEST(replicas, refuse_bad_input) {
  const context on = open_context(machines()[0].c_str());
  const auto refused = [](const char *text, sg_status status, sg_status wanted = SG_STATUS_INVALID_ARGUMENT) {
    EXPECT_STATUS(wanted, status);
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), text)) << sg_last_error_message();
  };
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  options.input_bytes = 64;
  pipeline made;
  options.replicas = static_cast<sg_replicas>(2);
  refused("options->replicas is 2", sg_pipeline_create(on, &options, made.out()));
  options.replicas = SG_REPLICAS_BATCHES;
  options.reserved = 1;
  refused("options->reserved", sg_pipeline_create(on, &options, made.out()));
  options.reserved = 0;
  ASSERT_OK(sg_pipeline_create(on, &options, made.out()));
  sg_stage_desc desc = SG_STAGE_DESC_INIT;
  desc.output_bytes = 64;
  desc.device = 1;
  sg_stage stage = SG_STAGE_INIT;
  refused("desc->device is 1; a stage of a pipeline with replicas", sg_pipeline_add_stage(made, &desc, &stage));

  const network net(on, replicated(SG_WEIGHTS_RESIDENT));
  doubles x = net.input(0), y(net.result_size());
  const void *const inputs[] = {x.data(), nullptr};
  void *const outputs[] = {y.data(), y.data()};
  const auto push = [&](sg_pipeline *to, std::int32_t count, const void *const *from, void *const *into,
                        const sg_submit *submit = nullptr) {
    sg_job *each[2] = {}, *whole = nullptr;
    const sg_status status = sg_pipeline_push_batches_async(to, count, from, into, submit, each, &whole);
    EXPECT_TRUE(!each[0] && !each[1] && !whole);
    return status;
  };
  refused("count is 0", push(net, 0, inputs, outputs));
  refused("count is -1", push(net, -1, inputs, outputs));
  refused("inputs is NULL", push(net, 1, nullptr, outputs));
  refused("outputs is NULL", push(net, 1, inputs, nullptr));
  refused("inputs[1] is NULL", push(net, 2, inputs, outputs));
  sg_submit wrong = SG_SUBMIT_INIT;
  wrong.priority = 7;
  refused("submit->priority is 7", push(net, 1, inputs, outputs, &wrong));
  const void *const overlapping[] = {y.data()};
  refused("and outputs[0] (", push(net, 1, overlapping, outputs));
  refused("pipeline", push(nullptr, 1, inputs, outputs), SG_STATUS_INVALID_HANDLE);
}

// Weights in a device's memory are there only.
TEST(replicas, refuse_memory_of_one_device) {
  const context on = open_context(machines()[0].c_str());
  network_options options = replicated(SG_WEIGHTS_RESIDENT);
  options.weights = SG_MEMORY_DEVICE;
  const network net(on, options);
  EXPECT_STATUS(SG_STATUS_UNSUPPORTED, sg_pipeline_prepare(net, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "stage 0 has")) << sg_last_error_message();
}

TEST(replicas, at_the_limit_all_batches_or_none_are_pushed) {
  const context on = open_context(machines()[0].c_str());
  network_options options = replicated(SG_WEIGHTS_RESIDENT);
  options.pipeline.batches_in_flight = 4;
  options.pipeline.when_full = SG_WHEN_FULL_REFUSE;
  const network net(on, options);
  info_of(net);
  batches given(on, net, 8, {SG_MEMORY_PINNED});
  EXPECT_EQ(4, info_of(net).batches_in_flight);
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, given.push_at_once(0, 5));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "inputs has 5 batches, and the pipeline's limit"))
      << sg_last_error_message();
  gated_job closed(on);
  SKIP_WITHOUT_GATE(closed);
  sg_job *const first = closed.get();
  const sg_submit behind = submit_after(first);
  ASSERT_OK(given.push_at_once(0, 3, &behind));
  EXPECT_STATUS(SG_STATUS_BUSY, given.push_at_once(3, 2));
  ASSERT_OK(given.push_at_once(3, 1));
  EXPECT_STATUS(SG_STATUS_BUSY, given.push(4));
  closed.open();
  for (unsigned i = 0; i < 4; ++i) given.check(i);
  ASSERT_OK(given.push_at_once(4, 4));
  for (unsigned i = 4; i < 8; ++i) given.check(i);
}

TEST(replicas, several_threads_push) {
  const context on = open_context(machines()[0].c_str());
  const network net(on, replicated(SG_WEIGHTS_STREAMED, 3, 96));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      batches given(on, net, 12, {SG_MEMORY_PINNED, SG_MEMORY_PAGEABLE});
      for (unsigned i = 0; i < 12; i += 3)
        if (t == 0) {
          for (unsigned j = 0; j < 3; ++j) EXPECT_OK(given.push(i + j));
        } else {
          EXPECT_OK(given.push_at_once(i, 3));
        }
      given.check_all();
    });
  for (std::thread &each : threads) each.join();
}

// A function is called for each batch, and records for the device that runs it.
TEST(replicas, functions_record_for_the_device_of_their_batch) {
  const context on = open_context(machines()[0].c_str());
  constexpr std::size_t n = 64, rows = 3;
  const placed weights(on, SG_MEMORY_PINNED, integers(n * n, 9));
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  options.input_bytes = rows * n * sizeof(double);
  options.replicas = SG_REPLICAS_BATCHES;
  options.batches_in_flight = 12;
  pipeline made;
  ASSERT_OK(sg_pipeline_create(on, &options, made.out()));
  const sg_weight weight = {weights.data(), weights.bytes()};
  sg_stage_desc desc = SG_STAGE_DESC_INIT;
  desc.output_bytes = options.input_bytes;
  desc.weights = &weight;
  desc.weight_count = 1;
  desc.place = SG_WEIGHTS_STREAMED;
  desc.function = [](const sg_stage *stage, void *user) {
    sg_gemm_desc gemm =
        make_gemm(static_cast<const double *>(stage->input), static_cast<double *>(stage->weights[0]),
                  static_cast<double *>(stage->output), std::int64_t(rows), std::int64_t(n), std::int64_t(n));
    gemm.alpha.re = double(1 + stage->batch % 3);  // it differs from batch to batch
    gemm.activation = SG_ACTIVATION_RELU;
    sg_submit submit = SG_SUBMIT_INIT;
    submit.graph = stage->graph;
    return sg_gemm_async(static_cast<sg_context *>(user), &gemm, &submit, nullptr);
  };
  desc.user = on;
  ASSERT_OK(sg_pipeline_add_stage(made, &desc, nullptr));
  constexpr unsigned count = 10;
  std::vector<doubles> x, y(count, doubles(rows * n));
  std::vector<const void *> inputs;
  std::vector<void *> outputs;
  for (unsigned i = 0; i < count; ++i) {
    x.push_back(integers(rows * n, 200 + i));
    inputs.push_back(x[i].data());
    outputs.push_back(y[i].data());
  }
  ASSERT_OK(sg_pipeline_push_batches(made, count, inputs.data(), outputs.data(), nullptr));
  for (unsigned i = 0; i < count; ++i) {
    doubles wanted = sg_reference::dense_relu(x[i], weights.values(), rows, n, n);
    for (double &each : wanted) each *= double(1 + i % 3);
    EXPECT_EQ(wanted, y[i]) << "batch " << i;
  }
  EXPECT_OK(made.reset());
}

// Batches of a lost device fail, and those that share weights with one; the others are right, and later ones run.
TEST(replicas, go_on_without_a_lost_device) {
  if (asked()) GTEST_SKIP() << "other devices are under test";
  int failed = 0;
  for (int at = 1; at < 60; at += sanitized ? 12 : 4) {
    const std::string name = "sim:h200x4?d2.lost-at=" + std::to_string(at);
    SCOPED_TRACE(name);
    const context on = open_context(name.c_str());
    const bool streams = at % 8 == 1;  // of weights that are shared
    network_options options = replicated(streams ? SG_WEIGHTS_STREAMED : SG_WEIGHTS_RESIDENT, 3, streams ? 512 : 128);
    options.weights = SG_MEMORY_PINNED;
    options.pipeline.batches_in_flight = 64;
    const network net(on, options);
    batches given(on, net, 30, {SG_MEMORY_PINNED});
    const auto observe = [&](unsigned begin, unsigned end) {
      int here = 0;
      for (unsigned i = begin; i < end; ++i) {
        if (!given.jobs[i]) continue;
        const sg_status status = sg_job_wait(given.jobs[i], SG_FOREVER, nullptr);
        if (status == SG_STATUS_OK) {
          EXPECT_EQ(net.expected(i), given.results[i]->values()) << "batch " << i;
        } else {
          EXPECT_TRUE(status == SG_STATUS_BACKEND_FAILURE || (streams && status == SG_STATUS_DEPENDENCY_FAILED))
              << "batch " << i << ": " << sg_status_name(status);
          ++here;
        }
      }
      return here;
    };
    sg_pipeline_info info = SG_PIPELINE_INFO_INIT;
    if (sg_pipeline_prepare(net, &info) != SG_STATUS_OK) continue;  // it was lost with the resident weights
    EXPECT_EQ(streams, info.shares_weights == 1);
    for (unsigned i = 0; i < 16; i += 4)
      if (const sg_status status = given.push_at_once(i, 4); status != SG_STATUS_OK) {
        EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, status);
      }
    const int lost = observe(0, 16);
    failed += lost;
    if (sg_context_device_status(on, 2) == SG_STATUS_OK) continue;
    for (unsigned i = 16; i < 30; i += 7) {
      ASSERT_OK(given.push_at_once(i, 6));
      ASSERT_OK(given.push(i + 6));
    }
    EXPECT_EQ(0, observe(16, 30));
  }
  EXPECT_GE(failed, sanitized ? 1 : 5);
}

TEST(replicas, are_on_devices_that_are_not_lost) {
  if (asked()) GTEST_SKIP() << "other devices are under test";
  const context on = open_context("sim:h200x2?d1.lost-at=1");
  const network other(on, [] {
    network_options options;
    options.devices = {1};
    return options;
  }());
  doubles x = other.input(0), y(other.result_size());
  EXPECT_NE(SG_STATUS_OK, sg_pipeline_push(other, x.data(), y.data(), nullptr));
  const network net(on, replicated(SG_WEIGHTS_RESIDENT));
  EXPECT_EQ(1, info_of(net).replicas);
  batches given(on, net, 4, {SG_MEMORY_PINNED});
  ASSERT_OK(given.push_at_once(0, 4));
  given.check_all();
}

// On one device all is as without replicas.
TEST(replicas, one_device_has_one) {
  for (const char *device : {"cpu", "sim:h200"}) {
    if (asked()) GTEST_SKIP() << "other devices are under test";
    const context on = open_context(device);
    for (const sg_weights_place place : {SG_WEIGHTS_RESIDENT, SG_WEIGHTS_STREAMED}) {
      const network net(on, replicated(place));
      const sg_pipeline_info info = info_of(net);
      EXPECT_EQ(1, info.replicas);
      EXPECT_EQ(0, info.shares_weights);
      batches given(on, net, 6, {SG_MEMORY_PINNED});
      ASSERT_OK(given.push_at_once(0, 6));
      given.check_all();
    }
  }
}

TEST(replicas, limit_the_memory_of_each) {
  const context on = open_context(machines()[0].c_str());
  network_options options = replicated(SG_WEIGHTS_AUTO, 4, 64);
  options.pipeline.memory_limit = 3 * 64 * 64 * sizeof(double) + 16384;  // three stages' weights, not four
  const sg_pipeline_info info = info_of(network(on, options));
  EXPECT_GT(info.streamed_stages, 0);
  EXPECT_EQ(devices_of(on), info.replicas);
  EXPECT_LE(info.device_bytes, static_cast<std::uint64_t>(info.replicas) * options.pipeline.memory_limit);
  options.place = SG_WEIGHTS_RESIDENT;
  EXPECT_STATUS(SG_STATUS_OUT_OF_MEMORY, sg_pipeline_prepare(network(on, options), nullptr));
}

TEST(replicas, are_described) {
  const context on = open_context(machines()[0].c_str());
  network_options options = replicated(SG_WEIGHTS_STREAMED, 4, 1024);
  options.weights = SG_MEMORY_PINNED;
  options.rows = 4;
  char text[4096] = "";
  ASSERT_OK(sg_pipeline_describe(network(on, options), text, sizeof text, nullptr));
  const bool shares = !asked() || info_of(network(on, options)).shares_weights;
  const std::string expected = std::to_string(devices_of(on)) + " replicas" +
                               (shares ? "; batches that are pushed at once share streamed weights\n" : "\n");
  EXPECT_NE(nullptr, std::strstr(text, expected.c_str())) << text;
  EXPECT_EQ(nullptr, std::strstr(text, "would take")) << text;

  // Without them, the text says what they would take, and the pipeline is as it was.
  options.pipeline.replicas = SG_REPLICAS_NONE;
  const network without(on, options);
  const sg_pipeline_info before = info_of(without);
  ASSERT_OK(sg_pipeline_describe(without, text, sizeof text, nullptr));
  EXPECT_NE(nullptr, std::strstr(text, "replicas on all devices would take ")) << text;
  batches given(on, without, 3, {SG_MEMORY_PINNED});
  ASSERT_OK(given.push_at_once(0, 2));
  ASSERT_OK(given.push(2));
  given.check_all();
  EXPECT_EQ(before.seconds_per_batch, info_of(without).seconds_per_batch);
}

// Where the link is the limit, two devices that share one stream of weights take a quarter of one's time; without links
// between them each brings its own.
TEST(replicas, are_predicted_to_share_the_links) {
  if (asked()) GTEST_SKIP() << "other devices are under test";
  const auto seconds_of = [](const char *machine, sg_replicas replicas, std::int32_t &shares) {
    network_options options = replicated(SG_WEIGHTS_STREAMED, 8, 512);
    options.weights = SG_MEMORY_PINNED;
    options.rows = 4;
    options.pipeline.replicas = replicas;
    options.devices = {replicas == SG_REPLICAS_NONE ? 0 : SG_DEVICE_ANY};
    const context on = open_context(machine);
    const sg_pipeline_info info = info_of(network(on, options));
    shares = info.shares_weights;
    return info.seconds_per_batch;
  };
  std::int32_t shares = 0;
  const double alone = seconds_of("sim:h200x2", SG_REPLICAS_NONE, shares);
  EXPECT_EQ(0, shares);
  EXPECT_LE(seconds_of("sim:h200x2", SG_REPLICAS_BATCHES, shares), alone / 3);
  EXPECT_EQ(1, shares);
  const double apart = seconds_of("sim:pcie4x2", SG_REPLICAS_NONE, shares);
  EXPECT_LE(seconds_of("sim:pcie4x2", SG_REPLICAS_BATCHES, shares), apart / 1.7);
  EXPECT_EQ(0, shares);
}

// Seconds from the end of one batch to the end of the next.
double measured_seconds_per_batch(const context &on, const network &net, unsigned at_once) {
  constexpr unsigned count = 24;
  batches given(on, net, count, {SG_MEMORY_PINNED});
  for (unsigned i = 0; i < count; i += at_once) EXPECT_OK(given.push_at_once(i, at_once));
  std::vector<double> ends;
  for (job &each : given.jobs) {
    EXPECT_OK(sg_job_wait(each, SG_FOREVER, nullptr));
    sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
    EXPECT_OK(sg_job_get_statistics(each, &statistics));
    ends.push_back(double(statistics.end_ns) * 1e-9);
  }
  return (ends[count - 1] - ends[count / 2 - 1]) / double(count - count / 2);
}

TEST(replicas, share_the_links_in_virtual_time) {
  if (asked()) GTEST_SKIP() << "other devices are under test";
  const auto measured = [](sg_replicas replicas) {
    const context on = open_context("sim:h200x2", 0, 0);
    network_options options = replicated(SG_WEIGHTS_STREAMED, 6, 512);
    options.weights = SG_MEMORY_PINNED;
    options.rows = 4;
    options.pipeline.replicas = replicas;
    options.devices = {replicas == SG_REPLICAS_NONE ? 0 : SG_DEVICE_ANY};
    options.pipeline.batches_in_flight = 40;
    const network net(on, options);
    return measured_seconds_per_batch(on, net, 2);
  };
  EXPECT_LE(measured(SG_REPLICAS_BATCHES), measured(SG_REPLICAS_NONE) / 2.8);
}

}  // namespace
}  // namespace sg_test
