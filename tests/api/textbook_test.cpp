// SPDX-License-Identifier: Apache-2.0
// The textbook case of overlap: two equal batches of copy in, kernel, copy out, each one unit of time. On one stream
// they take 6 units, on two streams 4: a speed-up of 1.50.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "support/harness.hpp"

namespace sg_test {
namespace {

constexpr int matrix_size = 64;  // matrices of 64 x 64 f64
constexpr std::uint64_t matrix_bytes = matrix_size * matrix_size * sizeof(double);
constexpr std::int64_t unit_ns = 1000000;  // 1 ms

// A device without latencies on which such a copy and such a GEMM take 1 ms each.
const char *const model = R"({
  "name": "textbook", "unified_memory": false, "lanes_are_cores": false, "memory_bytes": 1048576, "compute_lanes": 2,
  "lane_depth_commands": 8, "copy_engines": 2, "staging_workers": 1,
  "link": {
    "in_bytes_per_second": 32768000, "out_bytes_per_second": 32768000,
    "both_ways_in_bytes_per_second": 32768000, "both_ways_out_bytes_per_second": 32768000,
    "pageable_in_bytes_per_second": 32768000, "pageable_out_bytes_per_second": 32768000,
    "copy_latency_seconds": 0, "copy_gap_seconds": 0,
    "runs": [{"run_bytes": 512, "one_way_bytes_per_second": 32768000, "both_ways_bytes_per_second": 32768000}]
  },
  "staging": [{"workers": 1, "bytes_per_second": 1e12}],
  "kernels": {
    "launch_latency_seconds": 0, "launch_gap_seconds": 0, "units": 1, "tile_m_elements": 64, "tile_n_elements": 64,
    "split_k_elements": 0, "memory_bytes_per_second": 1e15,
    "gemm": [{"dtype": "f64", "compute": "exact", "flops_per_second": 524288000}]
  }
})";

class model_file {
 public:
  model_file() {
    const int fd = mkstemps(path_, 5);
    EXPECT_GE(fd, 0);
    EXPECT_EQ(static_cast<ssize_t>(std::char_traits<char>::length(model)),
              write(fd, model, std::char_traits<char>::length(model)));
    close(fd);
  }
  ~model_file() { unlink(path_); }
  std::string device() const { return std::string("sim:") + path_; }

 private:
  char path_[40] = "/tmp/sg_textbook_XXXXXX.json";
};

// One batch: pinned memory in and out, its own matrices on the device.
struct batch {
  sg_context *context;
  double *host = nullptr;
  buffer device[3];
  double *data[3];

  explicit batch(sg_context *c) : context(c) {
    void *memory = nullptr;
    EXPECT_OK(sg_host_alloc(c, matrix_bytes, &memory));
    host = static_cast<double *>(memory);
    for (int i = 0; i < 3; ++i) {
      EXPECT_OK(sg_buffer_create(c, matrix_bytes, nullptr, device[i].out()));
      EXPECT_OK(sg_buffer_data(device[i], &memory));
      data[i] = static_cast<double *>(memory);
    }
    for (int i = 0; i < matrix_size * matrix_size; ++i) host[i] = i;
  }
  ~batch() { sg_host_free(context, host); }

  // host = host * identity, through the device.
  std::vector<job> submit(sg_stream *stream) {
    sg_submit options = SG_SUBMIT_INIT;
    options.stream = stream;
    std::vector<job> jobs(3);
    const sg_gemm_desc desc = make_gemm(data[0], data[1], data[2], matrix_size, matrix_size, matrix_size);
    EXPECT_OK(sg_copy_async(context, data[0], host, matrix_bytes, &options, jobs[0].out()));
    EXPECT_OK(sg_gemm_async(context, &desc, &options, jobs[1].out()));
    EXPECT_OK(sg_copy_async(context, host, data[2], matrix_bytes, &options, jobs[2].out()));
    return jobs;
  }
};

struct interval {
  std::int64_t start, end;
};

interval times(sg_job *job) {
  sg_job_statistics stats = SG_JOB_STATISTICS_INIT;
  EXPECT_OK(sg_job_get_statistics(job, &stats));
  return {stats.start_ns, stats.end_ns};
}

// The time of two batches in units; `streams` is 1 or 2.
double two_batches(const model_file &file, int streams) {
  const context context = open_context(file.device().c_str());
  // The second factor, the identity, is on the device from the start. Its copy is not part of the measurement.
  batch first(context), second(context);
  std::vector<double> identity(matrix_size * matrix_size, 0.0);
  for (int i = 0; i < matrix_size; ++i) identity[static_cast<std::size_t>(i * matrix_size + i)] = 1;
  EXPECT_OK(sg_copy(context, first.data[1], identity.data(), matrix_bytes, nullptr));
  EXPECT_OK(sg_copy(context, second.data[1], identity.data(), matrix_bytes, nullptr));

  stream one, two;
  EXPECT_OK(sg_stream_create(context, nullptr, one.out()));
  EXPECT_OK(sg_stream_create(context, nullptr, two.out()));
  std::vector<job> jobs = first.submit(one);
  for (job &j : second.submit(streams == 2 ? two.get() : one.get())) jobs.push_back(std::move(j));
  EXPECT_OK(sg_context_synchronize(context, SG_FOREVER));

  interval whole = times(jobs[0]);
  for (const job &j : jobs) {
    const interval part = times(j);
    SCOPED_TRACE(testing::Message() << streams << " streams: " << part.start << " to " << part.end);
    EXPECT_EQ(unit_ns, part.end - part.start) << "each command takes one unit";
    whole.start = std::min(whole.start, part.start);
    whole.end = std::max(whole.end, part.end);
  }
  for (int i = 0; i < matrix_size * matrix_size; ++i) EXPECT_TRUE(first.host[i] == i && second.host[i] == i);
  return static_cast<double>(whole.end - whole.start) / static_cast<double>(unit_ns);
}

TEST(textbook, six_units_on_one_stream_four_on_two) {
  const model_file file;
  for (int repeat = 0; repeat < 20; ++repeat) {
    const double sequential = two_batches(file, 1), overlapped = two_batches(file, 2);
    ASSERT_EQ(6.0, sequential);
    ASSERT_EQ(4.0, overlapped);
    ASSERT_EQ(1.50, sequential / overlapped);
  }
}

}  // namespace
}  // namespace sg_test
