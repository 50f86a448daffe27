// SPDX-License-Identifier: Apache-2.0
// sg_trace: what a recording contains, its figures, its files, and what is refused.
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "support/harness.hpp"

namespace sg_test {
namespace {

class trace_recordings : public on_each_device {
 protected:
  static constexpr std::int64_t size = 96;

  void SetUp() override {
    on_each_device::SetUp();
    a_.assign(size * size, 1.0);
    b_.assign(size * size, 2.0);
    c_.assign(size * size, 0.0);
    d_.assign(size * size, 0.0);
  }
  sg_trace_metrics metrics_of(sg_trace *trace) {
    sg_trace_metrics m = SG_TRACE_METRICS_INIT;
    EXPECT_OK(sg_trace_get_metrics(trace, context_, &m));
    return m;
  }
  // Two jobs, each on a stream of its own.
  void run_two(job &first, job &second) {
    ASSERT_OK(sg_stream_create(context_, nullptr, streams_[0].out()));
    ASSERT_OK(sg_stream_create(context_, nullptr, streams_[1].out()));
    sg_submit submit = SG_SUBMIT_INIT;
    submit.stream = streams_[0];
    submit.label = "the first of two";
    const sg_gemm_desc one = make_gemm(a_.data(), b_.data(), c_.data(), size, size, size);
    ASSERT_OK(sg_gemm_async(context_, &one, &submit, first.out()));
    submit.stream = streams_[1];
    submit.label = nullptr;
    const sg_gemm_desc two = make_gemm(a_.data(), b_.data(), d_.data(), size, size, size);
    ASSERT_OK(sg_gemm_async(context_, &two, &submit, second.out()));
    ASSERT_OK(sg_job_wait(first, SG_FOREVER, nullptr));
    ASSERT_OK(sg_job_wait(second, SG_FOREVER, nullptr));
  }
  static std::string exported(sg_trace *trace, sg_trace_format format) {
    std::uint64_t needed = 0, again = 0;
    EXPECT_OK(sg_trace_export(trace, format, nullptr, 0, &needed));
    std::string text(needed, '\0');
    EXPECT_OK(sg_trace_export(trace, format, text.data(), text.size(), &again));
    EXPECT_EQ(needed, again);
    return text;
  }

  std::vector<double> a_, b_, c_, d_;
  stream streams_[2];
};

TEST_P(trace_recordings, hold_the_jobs_of_the_context) {
  trace recorded;
  ASSERT_OK(sg_trace_start(nullptr, recorded.out()));
  job first, second;
  run_two(first, second);
  ASSERT_OK(sg_trace_stop(recorded));
  ASSERT_OK(sg_trace_stop(recorded));
  const sg_trace_metrics m = metrics_of(recorded);
  EXPECT_EQ(2u, m.jobs);
  EXPECT_EQ(0u, m.failed_jobs);
  EXPECT_EQ(0u, m.dropped_events);
  EXPECT_GE(m.commands, 2u);
  // A GPU's small commands are timed by the host, which may learn of several at once.
  const bool is_exact = std::strncmp(GetParam(), "cuda", 4) != 0;
  if (is_exact) {
    EXPECT_GT(m.compute_seconds, 0);
  }
  EXPECT_LE(m.busy_seconds, m.span_seconds);
  EXPECT_GT(m.latency_p50_seconds, 0);
  EXPECT_LE(m.latency_p50_seconds, m.latency_max_seconds);
  EXPECT_NEAR(m.span_seconds - m.compute_seconds,
              m.idle_link_seconds + m.idle_staging_seconds + m.idle_submission_seconds + m.idle_dispatch_seconds +
                  m.idle_no_work_seconds,
              1e-9);
  sg_job_statistics stats = SG_JOB_STATISTICS_INIT;
  ASSERT_OK(sg_job_get_statistics(first, &stats));
  if (stats.bytes_in > 0) {
    EXPECT_EQ(2 * stats.bytes_in, m.bytes_in);
    EXPECT_EQ(2 * stats.bytes_out, m.bytes_out);
  }
  double seconds = -1;
  EXPECT_OK(sg_trace_overlap_jobs(recorded, first, first, &seconds));
  if (is_exact) {
    EXPECT_GT(seconds, 0) << "a job runs beside itself";
  }
  const double whole = seconds;
  EXPECT_OK(sg_trace_overlap_jobs(recorded, first, second, &seconds));
  EXPECT_GE(seconds, 0);
  EXPECT_LE(seconds, whole);
  double of_streams = -1;
  EXPECT_OK(sg_trace_overlap_streams(recorded, streams_[0], streams_[1], &of_streams));
  EXPECT_DOUBLE_EQ(seconds, of_streams) << "each stream had one job";
  for (const sg_trace_format format :
       {SG_TRACE_FORMAT_JSON, SG_TRACE_FORMAT_HTML, SG_TRACE_FORMAT_SVG, SG_TRACE_FORMAT_PERFETTO})
    EXPECT_NE(std::string::npos, exported(recorded, format).find("the first of two")) << int{format};
  EXPECT_NE(std::string::npos, exported(recorded, SG_TRACE_FORMAT_TEXT).find(GetParam()));
}

TEST_P(trace_recordings, time_each_command_on_the_device) {
  sg_trace_options options = SG_TRACE_OPTIONS_INIT;
  options.flags = SG_TRACE_DEVICE_TIMES;
  trace recorded;
  ASSERT_OK(sg_trace_start(&options, recorded.out()));
  job first, second;
  run_two(first, second);
  ASSERT_OK(sg_trace_stop(recorded));
  const sg_trace_metrics m = metrics_of(recorded);
  EXPECT_EQ(2u, m.jobs);
  EXPECT_GT(m.compute_seconds, 0);
  EXPECT_LE(m.busy_seconds, m.span_seconds);
  // Of jobs on streams, also where one waits for copies of another stream.
  sg_job_statistics stats = SG_JOB_STATISTICS_INIT;
  ASSERT_OK(sg_job_get_statistics(second, &stats));
  EXPECT_GE(stats.end_ns, stats.start_ns);
  options.flags = 2;
  trace refused;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_trace_start(&options, refused.out()));
  options.flags = 0;
  options.reserved = 1;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_trace_start(&options, refused.out()));
}

TEST_P(trace_recordings, know_nothing_of_what_was_before_and_after) {
  job first, second;
  run_two(first, second);
  trace recorded;
  ASSERT_OK(sg_trace_start(nullptr, recorded.out()));
  ASSERT_OK(sg_trace_stop(recorded));
  const sg_gemm_desc desc = make_gemm(a_.data(), b_.data(), c_.data(), size, size, size);
  ASSERT_OK(sg_gemm(context_, &desc, nullptr));
  const sg_trace_metrics m = metrics_of(recorded);
  EXPECT_EQ(0u, m.jobs);
  EXPECT_EQ(0u, m.commands);
  EXPECT_EQ(0, m.span_seconds);
  EXPECT_EQ(1, m.overlap_efficiency);
  double seconds = -1;
  EXPECT_OK(sg_trace_overlap_jobs(recorded, first, second, &seconds));
  EXPECT_EQ(0, seconds);
}

TEST_P(trace_recordings, count_failures_and_blocking_calls) {
  trace recorded;
  ASSERT_OK(sg_trace_start(nullptr, recorded.out()));
  const sg_gemm_desc desc = make_gemm(a_.data(), b_.data(), c_.data(), size, size, size);
  for (int i = 0; i < 5; ++i) ASSERT_OK(sg_gemm(context_, &desc, nullptr));
  {
    gated_job gate(context_);
    SKIP_WITHOUT_GATE(gate);
    sg_submit submit = SG_SUBMIT_INIT;
    sg_job *const before = gate.get();
    submit.after = &before;
    submit.after_count = 1;
    job cancelled;
    ASSERT_OK(sg_gemm_async(context_, &desc, &submit, cancelled.out()));
    ASSERT_OK(sg_job_cancel(cancelled));
    gate.open();
    EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(cancelled, SG_FOREVER, nullptr));
  }
  const sg_trace_metrics m = metrics_of(recorded);
  EXPECT_EQ(7u, m.jobs);
  EXPECT_EQ(1u, m.failed_jobs);
  EXPECT_GE(m.commands, 6u);
}

TEST_P(trace_recordings, hold_graphs) {
  owned<sg_graph, sg_graph_release> recorded_graph;
  ASSERT_OK(sg_graph_create(context_, recorded_graph.out()));
  sg_submit submit = SG_SUBMIT_INIT;
  submit.graph = recorded_graph;
  submit.label = "part";
  const sg_gemm_desc one = make_gemm(a_.data(), b_.data(), c_.data(), size, size, size);
  const sg_gemm_desc two = make_gemm(a_.data(), c_.data(), d_.data(), size, size, size);
  ASSERT_OK(sg_gemm_async(context_, &one, &submit, nullptr));
  ASSERT_OK(sg_gemm_async(context_, &two, &submit, nullptr));
  trace recorded;
  ASSERT_OK(sg_trace_start(nullptr, recorded.out()));
  job run;
  ASSERT_OK(sg_graph_run_async(recorded_graph, nullptr, run.out()));
  ASSERT_OK(sg_job_wait(run, SG_FOREVER, nullptr));
  const sg_trace_metrics m = metrics_of(recorded);
  EXPECT_EQ(1u, m.jobs) << "the run";
  EXPECT_GE(m.commands, 1u);
}

TEST_P(trace_recordings, name_the_request_of_each_job) {
  const std::uint64_t most = UINT64_MAX;  // more than the digits of a double
  owned<sg_graph, sg_graph_release> recorded_graph;
  ASSERT_OK(sg_graph_create(context_, recorded_graph.out()));
  sg_gemm_desc desc = make_gemm(a_.data(), b_.data(), c_.data(), size, size, size);
  sg_submit submit = SG_SUBMIT_INIT;
  submit.graph = recorded_graph;
  ASSERT_OK(sg_gemm_async(context_, &desc, &submit, nullptr));
  submit.trace_id = 71;
  desc = make_gemm(a_.data(), c_.data(), d_.data(), size, size, size);
  ASSERT_OK(sg_gemm_async(context_, &desc, &submit, nullptr));
  desc.alpha.re = 2;
  ASSERT_OK(update_recorded(recorded_graph, 1, SG_OPERATION_GEMM, &desc));  // keeps it
  trace recorded;
  ASSERT_OK(sg_trace_start(nullptr, recorded.out()));
  const auto finished = [&](sg_job *made, std::uint64_t request) {
    EXPECT_OK(sg_job_wait(made, SG_FOREVER, nullptr));
    sg_job_statistics stats = SG_JOB_STATISTICS_INIT;
    EXPECT_OK(sg_job_get_statistics(made, &stats));
    EXPECT_EQ(request, stats.trace_id);
  };
  job with, without, run;
  submit = SG_SUBMIT_INIT;
  submit.trace_id = most;
  submit.label = "named";
  ASSERT_OK(sg_gemm_async(context_, &desc, &submit, with.out()));
  finished(with, most);
  ASSERT_OK(sg_gemm_async(context_, &desc, nullptr, without.out()));
  finished(without, 0);
  submit.trace_id = 72;
  ASSERT_OK(sg_graph_run_async(recorded_graph, &submit, run.out()));
  finished(run, 72);
  ASSERT_OK(sg_trace_stop(recorded));
  const std::string json = exported(recorded, SG_TRACE_FORMAT_JSON);
  const auto names = [&json](const char *request) {
    return json.find("\"trace_id\": \"" + std::string(request) + "\"") != std::string::npos;
  };
  EXPECT_TRUE(names("18446744073709551615") && names("72") && !names("0")) << json;
  EXPECT_TRUE(names("71") || json.find("\"graph\"") != std::string::npos) << "a graph of the device is one command";
  for (const sg_trace_format format : {SG_TRACE_FORMAT_HTML, SG_TRACE_FORMAT_SVG})
    EXPECT_NE(std::string::npos, exported(recorded, format).find("named, trace id 18446744073709551615"))
        << int{format};
  submit.struct_size = offsetof(sg_submit, trace_id);  // of a program compiled before
  job older;
  ASSERT_OK(sg_gemm_async(context_, &desc, &submit, older.out()));
  finished(older, 0);
}

// GEMMs of one call that differ have no sizes in common, so none are shown.
TEST_P(trace_recordings, do_not_claim_more_work_than_was_done) {
  trace recorded;
  ASSERT_OK(sg_trace_start(nullptr, recorded.out()));
  double done = 0;
  std::vector<double> results(64 * 24 * 24);
  std::vector<sg_gemm_desc> group;
  for (std::int64_t i = 0; i < 64; ++i) {
    const std::int64_t n = i % 2 == 0 ? 24 : 8;
    group.push_back(make_gemm(a_.data(), b_.data(), &results[static_cast<std::size_t>(i * 24 * 24)], n, n, n));
    done += 2.0 * double(n * n * n);
  }
  ASSERT_OK(sg_gemm_grouped_async(context_, group.data(), 64, nullptr, nullptr));
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  const std::string json = exported(recorded, SG_TRACE_FORMAT_JSON);
  double claimed = 0;
  for (std::size_t at = json.find("\"flops\":"); at != json.npos; at = json.find("\"flops\":", at + 1))
    claimed += std::strtod(json.c_str() + at + 8, nullptr);
  EXPECT_LE(claimed, done);
}

TEST_P(trace_recordings, are_one_at_a_time) {
  trace recorded, other;
  ASSERT_OK(sg_trace_start(nullptr, recorded.out()));
  EXPECT_STATUS(SG_STATUS_BUSY, sg_trace_start(nullptr, other.out()));
  EXPECT_EQ(nullptr, other.get());
  ASSERT_OK(recorded.reset());  // which ends it
  ASSERT_OK(sg_trace_start(nullptr, other.out()));
}

TEST_P(trace_recordings, drop_what_there_is_no_room_for) {
  sg_trace_options options = SG_TRACE_OPTIONS_INIT;
  options.max_events = 3;
  trace recorded;
  ASSERT_OK(sg_trace_start(&options, recorded.out()));
  job first, second;
  run_two(first, second);
  const sg_trace_metrics m = metrics_of(recorded);
  EXPECT_EQ(3u, m.events);
  EXPECT_GT(m.dropped_events, 0u);
}

TEST_P(trace_recordings, are_written_by_the_name_of_the_file) {
  const std::string folder = testing::TempDir() + "/sg_trace_" + test_name(GetParam());
  std::filesystem::create_directories(folder);
  trace recorded;
  ASSERT_OK(sg_trace_start(nullptr, recorded.out()));
  job first, second;
  run_two(first, second);
  const struct {
    const char *name, *begins;
  } files[] = {
      {"t.json", "{"}, {"t.html", "<!DOCTYPE html>"}, {"t.svg", "<?xml"}, {"t.txt", ""}, {"t.pftrace", "\x0a"}};
  for (const auto &each : files) {
    const std::string path = folder + "/" + each.name;
    ASSERT_OK(sg_trace_write(recorded, path.c_str(), SG_TRACE_FORMAT_AUTO)) << path;
    std::ifstream file(path, std::ios::binary);
    const std::string content((std::istreambuf_iterator<char>(file)), {});
    EXPECT_GT(content.size(), 20u);
    EXPECT_EQ(0u, content.find(each.begins)) << path;
  }
  std::filesystem::remove_all(folder);
}

TEST_P(trace_recordings, refuse_bad_arguments) {
  trace recorded;
  ASSERT_OK(sg_trace_start(nullptr, recorded.out()));
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("sg-trace-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string pipe = folder / "pipe.json", link = folder / "link.json", target = folder / "target.json";
  ASSERT_EQ(0, mkfifo(pipe.c_str(), 0600));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_trace_write(recorded, pipe.c_str(), SG_TRACE_FORMAT_AUTO))
      << "nobody reads";
  std::filesystem::create_symlink(target, link);
  EXPECT_OK(sg_trace_write(recorded, link.c_str(), SG_TRACE_FORMAT_AUTO));
  std::filesystem::remove(target);
  ASSERT_EQ(0, chmod(folder.c_str(), 01777));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_trace_write(recorded, link.c_str(), SG_TRACE_FORMAT_AUTO));
  EXPECT_FALSE(std::filesystem::exists(target)) << "a link in a folder like /tmp is not followed";
  EXPECT_OK(sg_trace_write(recorded, target.c_str(), SG_TRACE_FORMAT_AUTO));
  std::filesystem::remove_all(folder);
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_trace_write(recorded, "/nowhere/at/all.json", SG_TRACE_FORMAT_AUTO));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "path is \"/nowhere/at/all.json\""));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_trace_write(recorded, "trace", SG_TRACE_FORMAT_AUTO));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_trace_write(recorded, nullptr, SG_TRACE_FORMAT_JSON));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_trace_write(recorded, "x.json", static_cast<sg_trace_format>(6)));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_trace_export(recorded, SG_TRACE_FORMAT_AUTO, nullptr, 0, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_trace_export(recorded, SG_TRACE_FORMAT_JSON, nullptr, 1, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_trace_start(nullptr, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_trace_get_metrics(recorded, context_, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_trace_stop(nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE,
                sg_trace_stop(reinterpret_cast<sg_trace *>(static_cast<sg_context *>(context_))));
  sg_trace_options options = SG_TRACE_OPTIONS_INIT;
  options.struct_size = 3;
  sg_trace *none = nullptr;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_trace_start(&options, &none));
  options = SG_TRACE_OPTIONS_INIT;
  options.max_events = UINT64_MAX;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_trace_start(&options, &none));
}

ON_EACH_DEVICE(trace_recordings);

}  // namespace
}  // namespace sg_test
