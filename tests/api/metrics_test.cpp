// SPDX-License-Identifier: Apache-2.0
// Counters of contexts, the progress of jobs, and the OpenMetrics text.
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "support/harness.hpp"

namespace sg_test {
namespace {

sg_context_metrics metrics_of(sg_context *context) {
  sg_context_metrics m = SG_CONTEXT_METRICS_INIT;
  EXPECT_OK(sg_context_get_metrics(context, &m));
  return m;
}

double progress_of(sg_job *job) {
  double fraction = -1;
  EXPECT_OK(sg_job_progress(job, &fraction));
  return fraction;
}

std::string open_metrics() {
  std::uint64_t needed = 0;
  EXPECT_OK(sg_metrics_text(nullptr, 0, &needed));
  std::string text;
  do {  // the digits change
    text.assign(needed, '?');
    EXPECT_OK(sg_metrics_text(text.data(), text.size(), &needed));
  } while (needed > text.size());
  EXPECT_EQ('\0', text.at(needed - 1));
  text.resize(needed - 1);
  return text;
}

class context_counters : public on_each_device {};

TEST_P(context_counters, count_jobs_and_bytes) {
  const std::int64_t size = 200;
  std::vector<double> a(size * size, 1.0), c(size * size, 0.0);
  const sg_context_metrics before = metrics_of(context_);
  EXPECT_EQ(0u, before.jobs_submitted);
  EXPECT_EQ(0u, before.commands);
  const sg_gemm_desc desc = make_gemm(a.data(), a.data(), c.data(), size, size, size);
  std::uint64_t in = 0, out = 0;
  for (int i = 0; i < 3; ++i) {
    job one;
    ASSERT_OK(sg_gemm_async(context_, &desc, nullptr, one.out()));
    ASSERT_OK(sg_job_wait(one, SG_FOREVER, nullptr));
    sg_job_statistics stats = SG_JOB_STATISTICS_INIT;
    ASSERT_OK(sg_job_get_statistics(one, &stats));
    in += stats.bytes_in;
    out += stats.bytes_out;
    EXPECT_EQ(1, progress_of(one));
  }
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  const sg_context_metrics m = metrics_of(context_);
  EXPECT_EQ(3u, m.jobs_submitted);
  EXPECT_EQ(3u, m.jobs_completed);
  EXPECT_EQ(0u, m.jobs_failed + m.jobs_cancelled + m.jobs_in_flight);
  EXPECT_EQ(in, m.bytes_in);
  EXPECT_EQ(out, m.bytes_out);
  EXPECT_GE(m.commands, 3u);
  // A GPU's short commands are timed by the host, which may learn of several at once.
  if (std::strncmp(GetParam(), "cuda", 4) != 0) {
    EXPECT_GT(m.compute_seconds, 0);
    EXPECT_EQ(in > 0, m.copy_in_seconds > 0);
    EXPECT_EQ(out > 0, m.copy_out_seconds > 0);
  }
  for (const double busy : {m.compute_seconds, m.copy_in_seconds, m.copy_out_seconds})
    EXPECT_LE(busy, m.elapsed_seconds);
  EXPECT_EQ(in > 0, m.device_bytes > 0) << "of the schedule's arena";
}

TEST_P(context_counters, count_copies_and_memory) {
  owned<sg_buffer, sg_buffer_release> buffer;
  const std::uint64_t bytes = 1 << 20;
  ASSERT_OK(sg_buffer_create(context_, bytes, nullptr, buffer.out()));
  void *pinned = nullptr;
  ASSERT_OK(sg_host_alloc(context_, bytes, &pinned));
  const sg_context_metrics held = metrics_of(context_);
  EXPECT_EQ(bytes, held.device_bytes);
  EXPECT_EQ(bytes, held.pinned_bytes);
  void *data = nullptr;
  ASSERT_OK(sg_buffer_data(buffer, &data));
  sg_device_info device = SG_DEVICE_INFO_INIT;
  ASSERT_OK(sg_context_get_device_info(context_, 0, &device));
  const auto kind_of = [&](const void *memory, std::uint64_t size) {
    sg_memory_kind kind = SG_MEMORY_AUTO;
    EXPECT_OK(sg_context_memory_kind(context_, memory, size, &kind));
    return device.unified_memory ? SG_MEMORY_AUTO : kind;
  };
  std::vector<char> ordinary(64);
  const auto expected = [&](sg_memory_kind kind) { return device.unified_memory ? SG_MEMORY_AUTO : kind; };
  EXPECT_EQ(expected(SG_MEMORY_DEVICE), kind_of(data, bytes));
  EXPECT_EQ(expected(SG_MEMORY_PINNED), kind_of(pinned, bytes));
  EXPECT_EQ(expected(SG_MEMORY_PINNED), kind_of(static_cast<char *>(pinned) + 100, bytes - 100));
  EXPECT_EQ(expected(SG_MEMORY_PAGEABLE), kind_of(ordinary.data(), ordinary.size()));
  sg_memory_kind kind = SG_MEMORY_PINNED;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_context_memory_kind(context_, pinned, 0, &kind));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_context_memory_kind(context_, nullptr, 1, &kind));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_context_memory_kind(context_, pinned, UINT64_MAX, &kind));
  EXPECT_EQ(SG_MEMORY_AUTO, kind);
  ASSERT_OK(sg_copy(context_, data, pinned, bytes, nullptr));
  ASSERT_OK(sg_copy(context_, pinned, data, bytes / 2, nullptr));
  const sg_context_metrics m = metrics_of(context_);
  EXPECT_EQ(device.unified_memory ? 0 : bytes, m.bytes_in);
  EXPECT_EQ(device.unified_memory ? 0 : bytes / 2, m.bytes_out);
  ASSERT_OK(sg_host_free(context_, pinned));
  EXPECT_EQ(0u, metrics_of(context_).pinned_bytes);
}

TEST_P(context_counters, tell_the_available_memory) {
  sg_device_info device = SG_DEVICE_INFO_INIT;
  ASSERT_OK(sg_context_get_device_info(context_, 0, &device));
  std::uint64_t before = 0, after = 0, none = 1;
  ASSERT_OK(sg_context_available_memory(context_, 0, &before));
  EXPECT_GT(before, 0u);
  EXPECT_LE(before, device.memory_bytes);
  buffer held;
  const std::uint64_t bytes = 1 << 26;
  ASSERT_OK(sg_buffer_create(context_, bytes, nullptr, held.out()));
  ASSERT_OK(sg_context_available_memory(context_, 0, &after));
  if (std::strncmp(GetParam(), "sim", 3) == 0) {
    EXPECT_EQ(before - bytes, after) << "no other process has a simulated device's memory";
  }
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_context_available_memory(context_, 1, &none));
  EXPECT_EQ(0u, none);
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_context_available_memory(context_, -1, &none));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_context_available_memory(context_, 0, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_context_available_memory(nullptr, 0, &none));
}

TEST_P(context_counters, tell_failed_from_cancelled) {
  double a = 1, c = 0;
  const sg_gemm_desc desc = make_gemm(&a, &a, &c, 1, 1, 1);
  {
    gated_job gate(context_);
    SKIP_WITHOUT_GATE(gate);
    sg_submit submit = SG_SUBMIT_INIT;
    sg_job *const first = gate.get();
    submit.after = &first;
    submit.after_count = 1;
    job cancelled, dependent;
    ASSERT_OK(sg_gemm_async(context_, &desc, &submit, cancelled.out()));
    sg_job *const second = cancelled;
    submit.after = &second;
    ASSERT_OK(sg_gemm_async(context_, &desc, &submit, dependent.out()));
    EXPECT_EQ(3u, metrics_of(context_).jobs_in_flight);
    EXPECT_EQ(0, progress_of(dependent));
    ASSERT_OK(sg_job_cancel(cancelled));
    gate.open();
    EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(cancelled, SG_FOREVER, nullptr));
    EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, sg_job_wait(dependent, SG_FOREVER, nullptr));
    EXPECT_LT(progress_of(dependent), 1);
  }
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  const sg_context_metrics m = metrics_of(context_);
  EXPECT_EQ(3u, m.jobs_completed);
  EXPECT_EQ(1u, m.jobs_cancelled);
  EXPECT_EQ(1u, m.jobs_failed);
}

TEST_P(context_counters, follow_the_submissions_of_a_graph) {
  double a = 2, c[2] = {};
  owned<sg_graph, sg_graph_release> graph;
  ASSERT_OK(sg_graph_create(context_, graph.out()));
  sg_submit submit = SG_SUBMIT_INIT;
  submit.graph = graph;
  for (double &each : c) {
    const sg_gemm_desc desc = make_gemm(&a, &a, &each, 1, 1, 1);
    ASSERT_OK(sg_gemm_async(context_, &desc, &submit, nullptr));
  }
  job run;
  ASSERT_OK(sg_graph_run_async(graph, nullptr, run.out()));
  ASSERT_OK(sg_job_wait(run, SG_FOREVER, nullptr));
  EXPECT_EQ(1, progress_of(run));
  // Also of a graph that the device runs as one command.
  sg_job_statistics stats = SG_JOB_STATISTICS_INIT;
  ASSERT_OK(sg_job_get_statistics(run, &stats));
  EXPECT_EQ(2, stats.commands_run);
  const bool on_cuda = std::strncmp(GetParam(), "cuda", 4) == 0;
  if (on_cuda && std::strcmp(stats.strategy, "graph of the device") == 0) {
    EXPECT_GT(stats.start_ns, 0);
    EXPECT_GE(stats.end_ns, stats.start_ns);
  }
}

// A device graph needs operands on the device.
TEST_P(context_counters, have_the_times_of_graphs_of_the_device) {
  owned<sg_buffer, sg_buffer_release> buffers[2];
  void *data[2] = {};
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(sg_buffer_create(context_, 64 * 64 * sizeof(double), nullptr, buffers[i].out()));
    ASSERT_OK(sg_buffer_data(buffers[i], &data[i]));
  }
  owned<sg_graph, sg_graph_release> graph;
  ASSERT_OK(sg_graph_create(context_, graph.out()));
  sg_submit submit = SG_SUBMIT_INIT;
  submit.graph = graph;
  const sg_gemm_desc desc = make_gemm(static_cast<double *>(data[0]), static_cast<double *>(data[0]),
                                      static_cast<double *>(data[1]), 64, 64, 64);
  ASSERT_OK(sg_gemm_async(context_, &desc, &submit, nullptr));
  ASSERT_OK(sg_gemm_async(context_, &desc, &submit, nullptr));
  job run;
  ASSERT_OK(sg_graph_run_async(graph, nullptr, run.out()));
  ASSERT_OK(sg_job_wait(run, SG_FOREVER, nullptr));
  sg_job_statistics stats = SG_JOB_STATISTICS_INIT;
  ASSERT_OK(sg_job_get_statistics(run, &stats));
  if (std::strcmp(stats.strategy, "graph of the device") != 0) GTEST_SKIP() << "the library replays it";
  EXPECT_GT(stats.start_ns, 0);
  EXPECT_GE(stats.end_ns, stats.start_ns);
  EXPECT_GT(metrics_of(context_).commands, 0u);
}

TEST_P(context_counters, refuse_bad_input) {
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_context_get_metrics(context_, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_metrics_text(nullptr, 1, nullptr));
  char one[1] = {'?'};
  EXPECT_OK(sg_metrics_text(one, sizeof one, nullptr));
  EXPECT_EQ('\0', one[0]);
  sg_context_metrics m = SG_CONTEXT_METRICS_INIT;
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_context_get_metrics(nullptr, &m));
  double fraction = 5;
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_job_progress(nullptr, &fraction));
  EXPECT_EQ(0, fraction);
}

ON_EACH_DEVICE(context_counters);

// Rows behind one busy lane, by priority.
TEST(queue_depth, is_counted_by_priority) {
  const context one_lane = open_context("cpu", 1);
  gated_job gate(one_lane);
  SKIP_WITHOUT_GATE(gate);
  ASSERT_TRUE(gate.running());
  double a = 1, c[3] = {};
  job queued[3];
  for (int i = 0; i < 3; ++i) {
    sg_submit submit = SG_SUBMIT_INIT;
    submit.priority = 1 - (i + 1) / 2;  // 1, 0, 0
    const sg_gemm_desc desc = make_gemm(&a, &a, &c[i], 1, 1, 1);
    ASSERT_OK(sg_gemm_async(one_lane, &desc, &submit, queued[i].out()));
  }
  EXPECT_EQ(4u, metrics_of(one_lane).jobs_in_flight);
  gate.open();
  for (job &each : queued) ASSERT_OK(sg_job_wait(each, SG_FOREVER, nullptr));
  EXPECT_EQ(0u, metrics_of(one_lane).queued_normal);
}

TEST(job_progress, grows_with_the_commands) {
  const context on = open_context("cpu", 1);
  const std::int64_t size = 700;
  std::vector<double> a(size * size, 1.0), c(size * size);
  const sg_gemm_desc desc = make_gemm(a.data(), a.data(), c.data(), size, size, size);
  sg_plan_options plan = SG_PLAN_OPTIONS_INIT;
  plan.split = SG_SPLIT_M;
  plan.parts = 8;
  sg_submit submit = SG_SUBMIT_INIT;
  submit.plan = &plan;
  job split;
  ASSERT_OK(sg_gemm_async(on, &desc, &submit, split.out()));
  double last = 0;
  while (sg_job_query(split, nullptr) == SG_STATUS_NOT_READY) {
    const double now = progress_of(split);
    EXPECT_GE(now, last);
    last = now;
  }
  EXPECT_LE(last, 1);
  EXPECT_EQ(1, progress_of(split));
}

// Commands, busy times and bytes of each device, whose sums are those of the context.
TEST(open_metrics_text, tells_the_devices_of_a_context_apart) {
  const context both = open_context("sim:h200x2");
  const std::vector<float> from(1 << 10);
  for (const int device : {0, 1, 1}) {
    sg_buffer_options on = SG_BUFFER_OPTIONS_INIT;
    on.device = device;
    buffer made;
    void *data = nullptr;
    ASSERT_OK(sg_buffer_create(both, from.size() * sizeof(float), &on, made.out()));
    ASSERT_OK(sg_buffer_data(made, &data));
    ASSERT_OK(sg_copy(both, data, from.data(), from.size() * sizeof(float), nullptr));
  }
  const std::string text = open_metrics();
  std::map<std::string, double> bytes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("streamgemm_transferred_bytes_total{") && line.find("direction=\"in\"") != line.npos) {
      const std::size_t at = line.find("device=\"") + 8;
      bytes[line.substr(at, line.find('"', at) - at)] += std::stod(line.substr(line.rfind(' ')));
    }
  EXPECT_EQ((std::map<std::string, double>{{"sim:h200x2/0", 4096}, {"sim:h200x2/1", 8192}}), bytes);
  EXPECT_NE(std::string::npos, text.find("device=\"sim:h200x2/0,sim:h200x2/1\"")) << "jobs are the context's";
}

// The format's rules, as far as a scraper depends on them: https://prometheus.io/docs/specs/om/open_metrics_spec/
TEST(open_metrics_text, follows_the_format) {
  const context first = open_context("cpu"), second = open_context("sim:h200");
  double a = 1, c = 0;
  const sg_gemm_desc desc = make_gemm(&a, &a, &c, 1, 1, 1);
  for (int i = 0; i < 5; ++i) ASSERT_OK(sg_gemm(second, &desc, nullptr));
  ASSERT_OK(sg_context_synchronize(second, SG_FOREVER));
  const std::string text = open_metrics();
  ASSERT_GE(text.size(), 6u);
  EXPECT_EQ("# EOF\n", text.substr(text.size() - 6));
  std::istringstream lines(text);
  std::map<std::string, std::string> types;
  std::string family;
  double submitted = -1;
  for (std::string line; std::getline(lines, line) && line != "# EOF";) {
    std::istringstream words(line);
    std::string hash, what, name, value;
    if (line[0] == '#') {
      words >> hash >> what >> name >> value;
      if (what == "TYPE") {
        EXPECT_TRUE(types.emplace(name, value).second) << name << " is named twice";
        family = name;
      } else {
        EXPECT_EQ(family, name) << line;
        EXPECT_TRUE(what == "HELP" || what == "UNIT") << line;
        if (what == "UNIT") {
          EXPECT_EQ(name.size() - value.size(), name.rfind(value)) << "the name ends with its unit";
        }
      }
      continue;
    }
    const std::string sample = line.substr(0, line.find('{'));
    EXPECT_EQ(family + (types[family] == "counter" ? "_total" : ""), sample);
    EXPECT_NE(std::string::npos, line.find("context=\"")) << line;
    EXPECT_NE(std::string::npos, line.find("} ")) << line;
    const double number = std::stod(line.substr(line.rfind(' ')));
    EXPECT_GE(number, 0) << line;
    if (sample == "streamgemm_jobs_submitted_total" && line.find("sim:h200") != std::string::npos)
      submitted = std::max(submitted, number);
  }
  EXPECT_EQ(5, submitted);
}

}  // namespace
}  // namespace sg_test
