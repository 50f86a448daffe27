// SPDX-License-Identifier: Apache-2.0
// Streams with reserved compute units. Where the device reserves none, only the refusal is tested.
#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "support/gemm_case.hpp"
#include "support/harness.hpp"

namespace sg_test {
namespace {

constexpr std::int64_t n = 24;
constexpr std::size_t bytes = n * n * sizeof(double);
using matrix = std::vector<double>;

class partitions : public testing::TestWithParam<const char *> {
 protected:
  // Partitions of the previous test's context may still be on their way out: each test starts when all are available.
  void SetUp() override {
    context_ = open_context(GetParam(), 2);
    static std::map<std::string, std::size_t> all;
    std::size_t &most = all[GetParam()];
    for (int tries = 0; tries < 200; ++tries) {
      total_ = all_free().size() - 1;
      if (total_ >= most) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_GE(total_, most) << "partitions of an earlier test are not released";
    most = total_;
  }

  // At most so many compute units that every device with partitions grants one, and that two leave none for a third.
  std::int32_t half() const {
    sg_device_info device = SG_DEVICE_INFO_INIT;
    EXPECT_OK(sg_context_get_device_info(context_, 0, &device));
    return std::max(1, device.compute_units / 2);
  }
  stream limited(std::int32_t units) const {
    stream made;
    EXPECT_OK(create_stream(context_, 0, units, made.out()));
    return made;
  }
  static bool is_partition(sg_stream *which) {
    std::int32_t answer = -1;
    EXPECT_OK(sg_stream_is_partition(which, &answer));
    return answer == 1;
  }
  static std::int32_t units_of(sg_stream *which) {
    std::int32_t units = -1;
    EXPECT_OK(sg_stream_compute_units(which, &units));
    return units;
  }
  static constexpr std::size_t enough = 20;
  static bool never_sets_aside() {
    return std::strncmp(GetParam(), "sim", 3) == 0 || std::strcmp(GetParam(), "cpu") == 0;
  }
  // Streams that hold every partition, and one more that has none.
  std::vector<stream> all_free() const {
    std::vector<stream> held;
    do held.push_back(limited(half()));
    while (is_partition(held.back()) && held.size() < enough);
    return held;
  }
  static sg_submit on(sg_stream *in) {
    sg_submit options = SG_SUBMIT_INIT;
    options.stream = in;
    return options;
  }

  context context_;
  std::size_t total_ = 0;
};

#define SKIP_WITHOUT_PARTITIONS() \
  if (total_ == 0) GTEST_SKIP() << GetParam() << " reserves no compute units"

TEST_P(partitions, only_where_a_limit_asks_for_them) {
  stream whole;
  ASSERT_OK(sg_stream_create(context_, nullptr, whole.out()));
  EXPECT_FALSE(is_partition(whole));
  EXPECT_FALSE(is_partition(limited(0)));
  EXPECT_FALSE(is_partition(limited(INT32_MAX))) << "a limit of all units is no partition";
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_stream_is_partition(whole, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "out_is_partition")) << sg_last_error_message();
  std::int32_t answer = 7;
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_stream_is_partition(nullptr, &answer));
  if (never_sets_aside()) {
    EXPECT_FALSE(is_partition(limited(1)));
  }
}

TEST_P(partitions, are_disjoint_and_released) {
  SKIP_WITHOUT_PARTITIONS();
  std::vector<stream> held = all_free();
  ASSERT_GE(held.size(), 2u);
  ASSERT_LT(held.size(), enough) << "partitions never run out";
  std::int32_t sum = 0;
  for (std::size_t i = 0; i + 1 < held.size(); ++i) {
    const std::int32_t units = units_of(held[i]);
    EXPECT_GE(units, 1);
    EXPECT_LE(units, half());
    sum += units;
  }
  EXPECT_EQ(half(), units_of(held.back())) << "without a partition the limit is the requested one";
  if (std::string(GetParam()).find("cuda") == 0) {
    EXPECT_LE(sum, 2 * half() + 1);
  }
  const std::int32_t first = units_of(held.front());
  held.front().reset();
  const stream again = limited(half());
  EXPECT_TRUE(is_partition(again));
  EXPECT_EQ(first, units_of(again));
}

TEST_P(partitions, are_released_when_their_jobs_have_completed) {
  SKIP_WITHOUT_PARTITIONS();
  stream busy = limited(half());
  ASSERT_TRUE(is_partition(busy));
  const std::vector<stream> others = all_free();
  EXPECT_EQ(total_, others.size()) << "one of them is busy";
  const sg_submit options = on(busy);
  gated_job gated(context_, &options);
  SKIP_WITHOUT_GATE(gated);
  double a = 2, b = 3, c = 0;
  const sg_gemm_desc desc = make_gemm(&a, &b, &c, 1, 1, 1);
  EXPECT_OK(sg_gemm_async(context_, &desc, &options, nullptr));
  ASSERT_TRUE(gated.running());
  EXPECT_OK(busy.reset());
  EXPECT_FALSE(is_partition(limited(half()))) << "its multiprocessors are still in use";
  gated.open();
  EXPECT_OK(sg_context_synchronize(context_, SG_FOREVER));
  EXPECT_EQ(6, c);
  EXPECT_EQ(gated_job::expected, *gated.result());
  EXPECT_TRUE(is_partition(limited(half())));
}

TEST_P(partitions, every_form_of_gemm) {
  SKIP_WITHOUT_PARTITIONS();
  const stream in = limited(half());
  ASSERT_TRUE(is_partition(in));
  // In pageable memory, tiled, split over K, and as a batch; ordered after a GEMM of another stream.
  matrix a(n * n), b(n * n), expected(n * n, 0);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = double(i % 5), b[i] = double(i % 3);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t l = 0; l < n; ++l)
        expected[std::size_t(i * n + j)] += a[std::size_t(i * n + l)] * b[std::size_t(l * n + j)];
  sg_plan_options tiles = SG_PLAN_OPTIONS_INIT, over_k = SG_PLAN_OPTIONS_INIT;
  tiles.tile_m = 8;
  over_k.split = SG_SPLIT_K;
  over_k.parts = 3;
  for (const sg_plan_options *how :
       {static_cast<const sg_plan_options *>(nullptr), &std::as_const(tiles), &std::as_const(over_k)}) {
    matrix c(n * n, -1);
    const sg_gemm_desc desc = make_gemm(a.data(), b.data(), c.data(), n, n, n);
    sg_submit options = on(in);
    options.plan = how;
    job done;
    ASSERT_OK(sg_gemm_async(context_, &desc, &options, done.out()));
    EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
    EXPECT_EQ(expected, c);
  }
}

// A chain longer than a lane, in device memory; GEMMs beside it must not be delayed.
TEST_P(partitions, a_long_chain_beside_others) {
  SKIP_WITHOUT_PARTITIONS();
  constexpr int length = 60;
  const stream in = limited(half());
  buffer memory;
  void *data = nullptr;
  ASSERT_OK(sg_buffer_create(context_, 4 * bytes, nullptr, memory.out()));
  ASSERT_OK(sg_buffer_data(memory, &data));
  const auto at = [&](int i) { return static_cast<double *>(data) + i * n * n; };
  matrix host(4 * n * n, 0);
  for (std::int64_t i = 0; i < n; ++i) host[std::size_t(i * n + (i + 1) % n)] = 1;  // shifts rows, all the way round
  for (std::int64_t i = 0; i < n * n; ++i) host[std::size_t(n * n + i)] = double(i);
  ASSERT_OK(sg_copy(context_, data, host.data(), 4 * bytes, nullptr));
  const sg_submit options = on(in);
  std::vector<job> chain(length), beside(length);
  for (int i = 0; i < length; ++i) {
    const sg_gemm_desc step = make_gemm(at(0), at(1 + i % 2), at(2 - i % 2), n, n, n);
    ASSERT_OK(sg_gemm_async(context_, &step, &options, chain[std::size_t(i)].out()));
    const sg_gemm_desc other = make_gemm(at(0), at(0), at(3), n, n, n);
    ASSERT_OK(sg_gemm_async(context_, &other, nullptr, beside[std::size_t(i)].out()));
  }
  for (const auto *all : {&chain, &beside})
    for (const job &each : *all) EXPECT_OK(sg_job_wait(each, SG_FOREVER, nullptr));
  matrix back(4 * n * n);
  ASSERT_OK(sg_copy(context_, back.data(), data, 4 * bytes, nullptr));
  for (std::int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(double((i + length) % n * n), back[std::size_t((1 + length % 2) * n * n + i * n)]) << "row " << i;
    ASSERT_EQ(1, back[std::size_t(3 * n * n + i * n + (i + 2) % n)]) << "row " << i;
  }
}

// While a job in the partition is blocked, the jobs behind it wait and can be cancelled, and other streams continue.
TEST_P(partitions, a_full_partition_delays_no_other_stream) {
  SKIP_WITHOUT_PARTITIONS();
  const stream in = limited(half());
  const sg_submit options = on(in);
  gated_job gated(context_, &options);
  SKIP_WITHOUT_GATE(gated);
  constexpr int length = 40;
  double a = 2, b = 3;
  std::vector<double> c(length, -1);
  std::vector<job> chain(length);
  for (int i = 0; i < length; ++i) {
    const sg_gemm_desc desc = make_gemm(&a, &b, &c[std::size_t(i)], 1, 1, 1);
    ASSERT_OK(sg_gemm_async(context_, &desc, &options, chain[std::size_t(i)].out()));
  }
  double beside = 0;
  const sg_gemm_desc desc = make_gemm(&a, &b, &beside, 1, 1, 1);
  job free;
  ASSERT_OK(sg_gemm_async(context_, &desc, nullptr, free.out()));
  EXPECT_OK(sg_job_wait(free, SG_FOREVER, nullptr));
  EXPECT_EQ(6, beside);
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_job_query(chain.back(), nullptr));
  EXPECT_OK(sg_job_cancel(chain.back()));
  gated.open();
  for (int i = 0; i + 1 < length; ++i) {
    EXPECT_OK(sg_job_wait(chain[std::size_t(i)], SG_FOREVER, nullptr));
    EXPECT_EQ(6, c[std::size_t(i)]);
  }
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(chain.back(), SG_FOREVER, nullptr));
  EXPECT_EQ(-1, c.back());
}

TEST_P(partitions, recorded_in_a_graph) {
  SKIP_WITHOUT_PARTITIONS();
  stream in = limited(half());
  buffer memory;
  void *data = nullptr;
  ASSERT_OK(sg_buffer_create(context_, 4 * bytes, nullptr, memory.out()));
  ASSERT_OK(sg_buffer_data(memory, &data));
  const auto at = [&](int i) { return static_cast<double *>(data) + i * n * n; };
  matrix host(4 * n * n, 1);
  ASSERT_OK(sg_copy(context_, data, host.data(), 4 * bytes, nullptr));
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit within = on(in), beside = SG_SUBMIT_INIT;
  within.graph = beside.graph = graph;
  const sg_gemm_desc first = make_gemm(at(0), at(1), at(2), n, n, n), second = make_gemm(at(0), at(2), at(3), n, n, n);
  EXPECT_OK(sg_gemm_async(context_, &first, &within, nullptr));
  EXPECT_OK(sg_gemm_async(context_, &second, &beside, nullptr));
  EXPECT_OK(in.reset());  // the graph keeps it
  for (int run = 1; run <= 3; ++run) {
    sg_gemm_desc changed = first;
    changed.alpha = {double(run), 0};
    EXPECT_OK(update_recorded(graph, 0, SG_OPERATION_GEMM, &changed));
    job done;
    ASSERT_OK(sg_graph_run_async(graph, nullptr, done.out()));
    EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
    ASSERT_OK(sg_copy(context_, host.data(), data, 4 * bytes, nullptr));
    EXPECT_EQ(matrix(n * n, double(run) * n * n), matrix(host.begin() + 3 * n * n, host.end()));
  }
  EXPECT_EQ(total_, all_free().size()) << "one of them is the graph's";
  EXPECT_OK(sg_graph_release(graph));
  EXPECT_EQ(total_ + 1, all_free().size());
}

// The stream refers to the run as its latest job, and the run's children refer to the stream: the run releases them
// when it completes.
TEST_P(partitions, are_released_after_graph_runs) {
  SKIP_WITHOUT_PARTITIONS();
  for (int round = 0; round < 2; ++round) {
    stream in = limited(half());
    sg_graph *graph = nullptr;
    ASSERT_OK(sg_graph_create(context_, &graph));
    double a = 2, b = 3, c = 0;
    const sg_gemm_desc desc = make_gemm(&a, &b, &c, 1, 1, 1);
    sg_submit record = on(in);
    record.graph = graph;
    ASSERT_OK(sg_gemm_async(context_, &desc, &record, nullptr));
    const sg_submit options = on(in);
    job done;
    ASSERT_OK(sg_graph_run_async(graph, &options, done.out()));
    EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
    EXPECT_EQ(6, c);
    sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
    EXPECT_OK(sg_job_get_statistics(done, &statistics));
    EXPECT_EQ(1, statistics.commands);
    EXPECT_EQ(2, statistics.flops);
    EXPECT_OK(sg_graph_release(graph));
    EXPECT_OK(in.reset());
    EXPECT_OK(done.reset());
    EXPECT_EQ(total_ + 1, all_free().size());
  }
}

TEST_P(partitions, outlive_their_context) {
  SKIP_WITHOUT_PARTITIONS();
  stream in = limited(half());
  double a = 2, b = 3, c = 0;
  const sg_gemm_desc desc = make_gemm(&a, &b, &c, 1, 1, 1);
  const sg_submit options = on(in);
  job done;
  ASSERT_OK(sg_gemm_async(context_, &desc, &options, done.out()));
  EXPECT_OK(context_.reset());
  EXPECT_TRUE(is_partition(in));
  EXPECT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
  EXPECT_EQ(6, c);
  EXPECT_OK(in.reset());
}

ON_EACH_DEVICE(partitions);

}  // namespace
}  // namespace sg_test
