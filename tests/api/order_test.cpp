// SPDX-License-Identifier: Apache-2.0
// The order of submissions: by overlapping operands, by streams, by priorities, and no order where none is due.
#include <algorithm>
#include <array>
#include <cstring>

#include "support/harness.hpp"

namespace sg_test {
namespace {

using small_matrix = std::array<double, 4>;    // 2 x 2
constexpr small_matrix growth = {1, 1, 1, 0};  // its powers hold the Fibonacci numbers

class order : public testing::TestWithParam<const char *> {
 protected:
  void SetUp() override { context_ = open_context(GetParam()); }
  sg_gemm_desc times(const small_matrix &a, const small_matrix &b, small_matrix &c) {
    return make_gemm(a.data(), b.data(), c.data(), 2, 2, 2);
  }
  context context_;
};

// x[i + 1] = x[i] * growth: each job reads the result of the previous one, without explicit dependencies.
TEST_P(order, read_after_write) {
  std::vector<small_matrix> x(60, small_matrix{});
  x[0] = {1, 0, 0, 1};
  std::vector<job> jobs(x.size() - 1);
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    const sg_gemm_desc desc = times(x[i], growth, x[i + 1]);
    ASSERT_OK(sg_gemm_async(context_, &desc, nullptr, jobs[i].out()));
  }
  ASSERT_OK(sg_job_wait(jobs.back(), SG_FOREVER, nullptr));
  EXPECT_EQ(956722026041.0, x[59][1]) << "the 59th Fibonacci number";
}

// Jobs alternately read and overwrite a matrix: every reader must see the value written just before it.
TEST_P(order, write_after_read) {
  small_matrix shared = {1, 0, 0, 1};
  std::vector<small_matrix> seen(40), values(40);
  std::vector<job> jobs;
  const small_matrix identity = {1, 0, 0, 1};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    values[i] = {double(i) + 2, 0, 0, 1};
    job reader, writer;
    const sg_gemm_desc read = times(shared, identity, seen[i]), write = times(values[i], identity, shared);
    ASSERT_OK(sg_gemm_async(context_, &read, nullptr, reader.out()));
    ASSERT_OK(sg_gemm_async(context_, &write, nullptr, writer.out()));
    jobs.push_back(std::move(reader));
    jobs.push_back(std::move(writer));
  }
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(double(i) + 1, seen[i][0]) << i;
  EXPECT_EQ(41.0, shared[0]);
}

// c = c * 3 + i, for jobs that all write one result: only one order gives this value.
TEST_P(order, write_after_write) {
  double c = 0, one = 1;
  std::vector<double> addends(30);
  double expected = 0;
  for (std::size_t i = 0; i < addends.size(); ++i) {
    addends[i] = double(i);
    expected = expected * 3 + double(i);
    sg_gemm_desc desc = make_gemm(&addends[i], &one, &c, 1, 1, 1);
    desc.beta.re = 3;
    ASSERT_OK(sg_gemm_async(context_, &desc, nullptr, nullptr));
  }
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  EXPECT_EQ(expected, c);
}

// The operands overlap in one element only: the last of the writer's is the first of the reader's.
TEST_P(order, partial_overlap) {
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  double a[2] = {2, 3}, one = 1, memory[3] = {}, out[2] = {};
  sg_submit options = SG_SUBMIT_INIT;
  sg_job *const first = gated.get();
  options.after = &first;
  options.after_count = 1;
  const sg_gemm_desc write = make_gemm(a, &one, memory, 2, 1, 1), read = make_gemm(memory + 1, &one, out, 2, 1, 1);
  job reader;
  ASSERT_OK(sg_gemm_async(context_, &write, &options, nullptr));
  ASSERT_OK(sg_gemm_async(context_, &read, nullptr, reader.out()));
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_job_wait(reader, 5000000, nullptr));
  gated.open();
  ASSERT_OK(sg_job_wait(reader, SG_FOREVER, nullptr));
  EXPECT_EQ(3, out[0]);
}

// Adjacent tiles of one matrix: their address ranges interleave but they share no element, so they do not wait.
TEST_P(order, disjoint_tiles_of_one_matrix_run_beside_each_other) {
  const context wide = open_context(GetParam(), 2);
  gate *const g = gate_new(4 * sizeof(double));
  if (!g) GTEST_SKIP() << "userfaultfd is not available here";
  double column[4] = {1, 2, 3, 4}, b[2] = {3, 5}, c[4][4] = {};
  std::copy(column, column + 4, static_cast<double *>(gate_content(g)));
  sg_gemm_desc left = make_gemm(static_cast<double *>(gate_memory(g)), b, &c[0][0], 4, 2, 1);
  sg_gemm_desc right = make_gemm(column, b, &c[0][2], 4, 2, 1);
  left.c.ld = right.c.ld = 4;
  job held, free;
  ASSERT_OK(sg_gemm_async(wide, &left, nullptr, held.out()));
  ASSERT_OK(sg_gemm_async(wide, &right, nullptr, free.out()));
  EXPECT_OK(sg_job_wait(free, SG_FOREVER, nullptr));
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_job_query(held, nullptr));
  gate_open(g);
  EXPECT_OK(sg_job_wait(held, SG_FOREVER, nullptr));
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) EXPECT_EQ(b[j % 2] * (i + 1), c[i][j]);
  gate_free(g);
}

TEST_P(order, many_tiles_of_one_matrix_are_correct) {
  constexpr int tiles = 6, size = 5, ld = tiles * size;
  std::vector<double> a(size * size, 1.0), c(ld * ld, -1.0);
  std::vector<std::vector<double>> b;
  for (int i = 0; i < tiles * tiles; ++i) b.emplace_back(size * size, double(i));
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < tiles * tiles; ++i) {
      sg_gemm_desc desc = make_gemm(a.data(), b[static_cast<std::size_t>(i)].data(),
                                    c.data() + (i / tiles) * size * ld + (i % tiles) * size, size, size, size);
      desc.c.ld = ld;
      desc.beta.re = round ? 2 : 0;
      ASSERT_OK(sg_gemm_async(context_, &desc, nullptr, nullptr));
    }
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  for (int i = 0; i < ld; ++i)
    for (int j = 0; j < ld; ++j)
      ASSERT_EQ(7.0 * size * ((i / size) * tiles + j / size), c[static_cast<std::size_t>(i * ld + j)]);
}

// The caller declares independence; the library then starts the second job at once, though it reads the first one's
// result.
TEST_P(order, untracked_submissions_do_not_wait) {
  const context wide = open_context(GetParam(), 2);
  gate *const g = gate_new(sizeof(double));
  if (!g) GTEST_SKIP() << "userfaultfd is not available here";
  double b = 3, c = 0, d = 0, one = 1;
  const sg_gemm_desc write = make_gemm(static_cast<double *>(gate_memory(g)), &b, &c, 1, 1, 1),
                     read = make_gemm(&c, &one, &d, 1, 1, 1);
  job first, second;
  ASSERT_OK(sg_gemm_async(wide, &write, nullptr, first.out()));
  sg_submit options = SG_SUBMIT_INIT;
  options.flags = SG_SUBMIT_UNTRACKED;
  ASSERT_OK(sg_gemm_async(wide, &read, &options, second.out()));
  EXPECT_OK(sg_job_wait(second, SG_FOREVER, nullptr));
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_job_query(first, nullptr));
  gate_open(g);
  EXPECT_OK(sg_job_wait(first, SG_FOREVER, nullptr));
  gate_free(g);
}

// Without tracking, only the stream keeps this order.
TEST_P(order, a_stream_keeps_the_order_of_untracked_submissions) {
  stream one_stream;
  ASSERT_OK(sg_stream_create(context_, nullptr, one_stream.out()));
  sg_submit options = SG_SUBMIT_INIT;
  options.stream = one_stream;
  options.flags = SG_SUBMIT_UNTRACKED;
  std::vector<small_matrix> x(50, small_matrix{});
  x[0] = {1, 0, 0, 1};
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    const sg_gemm_desc desc = times(x[i], growth, x[i + 1]);
    ASSERT_OK(sg_gemm_async(context_, &desc, &options, nullptr));
  }
  ASSERT_OK(sg_stream_synchronize(one_stream, SG_FOREVER));
  EXPECT_EQ(7778742049.0, x[49][1]) << "the 49th Fibonacci number";
}

TEST_P(order, two_streams_do_not_wait_for_each_other) {
  const context wide = open_context(GetParam(), 2);
  stream first, second;
  ASSERT_OK(sg_stream_create(wide, nullptr, first.out()));
  ASSERT_OK(sg_stream_create(wide, nullptr, second.out()));
  sg_submit on_first = SG_SUBMIT_INIT, on_second = SG_SUBMIT_INIT;
  on_first.stream = first;
  on_second.stream = second;
  gated_job gated(wide, &on_first);
  SKIP_WITHOUT_GATE(gated);
  double a = 2, b = 4, c = 0, d = 0;
  const sg_gemm_desc other = make_gemm(&a, &b, &c, 1, 1, 1), behind = make_gemm(&a, &b, &d, 1, 1, 1);
  job free, held;
  ASSERT_OK(sg_gemm_async(wide, &behind, &on_first, held.out()));
  ASSERT_OK(sg_gemm_async(wide, &other, &on_second, free.out()));
  EXPECT_OK(sg_job_wait(free, SG_FOREVER, nullptr));
  EXPECT_STATUS(SG_STATUS_NOT_READY, sg_job_query(held, nullptr));
  gated.open();
  EXPECT_OK(sg_job_wait(held, SG_FOREVER, nullptr));
}

// Data tracking works across streams, and for copies as well as GEMMs.
TEST_P(order, copies_and_gemms_are_ordered_by_data) {
  stream first, second;
  ASSERT_OK(sg_stream_create(context_, nullptr, first.out()));
  ASSERT_OK(sg_stream_create(context_, nullptr, second.out()));
  sg_submit on_first = SG_SUBMIT_INIT, on_second = SG_SUBMIT_INIT;
  on_first.stream = first;
  on_second.stream = second;
  small_matrix x = {1, 0, 0, 1}, y = {};
  for (int i = 0; i < 20; ++i) {
    const sg_gemm_desc desc = times(x, growth, y);
    ASSERT_OK(sg_gemm_async(context_, &desc, &on_first, nullptr));
    ASSERT_OK(sg_copy_async(context_, x.data(), y.data(), sizeof x, &on_second, nullptr));
  }
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  EXPECT_EQ(6765.0, x[1]) << "the 20th Fibonacci number";
}

// One lane and pinned operands: a gated job then blocks the first engine that each job needs, on every device.
class priorities : public testing::TestWithParam<const char *> {
 protected:
  static constexpr int waiting = 200;  // far more than a lane accepts in advance

  void SetUp() override {
    context_ = open_context(GetParam(), 1);
    void *memory = nullptr;
    ASSERT_OK(sg_host_alloc(context_, (waiting + 10) * sizeof(double), &memory));
    pinned_ = static_cast<double *>(memory);
    std::fill(pinned_, pinned_ + waiting + 10, 1.0);
    if (std::strncmp(GetParam(), "cuda", 4) == 0) return hold_for_long();
    gate_ = gate_new(sizeof(double));
    if (!gate_) GTEST_SKIP() << "userfaultfd is not available here";
    ASSERT_OK(sg_host_register(context_, gate_memory(gate_), sizeof(double)));
    const sg_gemm_desc held = make_gemm(static_cast<double *>(gate_memory(gate_)), factor(), pinned_ + 2, 1, 1, 1);
    ASSERT_OK(sg_gemm_async(context_, &held, nullptr, nullptr));
    ASSERT_EQ(1, gate_reached(gate_, 300000));
  }
  // A GPU's driver cannot pin a gate: there the lane is blocked by copies that take much longer than the submissions.
  void hold_for_long() {
    constexpr std::uint64_t bytes = std::uint64_t{1} << 30;
    ASSERT_OK(sg_host_alloc(context_, bytes, &long_source_));
    ASSERT_OK(sg_buffer_create(context_, bytes, nullptr, long_target_.out()));
    void *target = nullptr;
    ASSERT_OK(sg_buffer_data(long_target_, &target));
    for (int i = 0; i < 5; ++i) ASSERT_OK(sg_copy_async(context_, target, long_source_, bytes, nullptr, nullptr));
  }
  void TearDown() override {
    open_gate();
    EXPECT_OK(sg_context_synchronize(context_, SG_FOREVER));
    EXPECT_OK(sg_host_free(context_, pinned_));
    EXPECT_OK(sg_host_free(context_, long_source_));
    gate_free(gate_);
  }
  void open_gate() {
    if (gate_) gate_open(gate_);
  }
  double *factor() { return pinned_; }
  job submit(int slot, const sg_submit &options) {
    const sg_gemm_desc desc = make_gemm(factor(), factor() + 1, pinned_ + 3 + slot, 1, 1, 1);
    job result;
    EXPECT_OK(sg_gemm_async(context_, &desc, &options, result.out()));
    return result;
  }
  // Unblocks the lane; returns how many of the `others` had completed when `urgent` did.
  void expect_overtaken(sg_job *urgent, const std::vector<job> &others) {
    open_gate();
    ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
    sg_job_statistics early = SG_JOB_STATISTICS_INIT;
    ASSERT_OK(sg_job_get_statistics(urgent, &early));
    int before = 0;
    for (const job &other : others) {
      sg_job_statistics late = SG_JOB_STATISTICS_INIT;
      ASSERT_OK(sg_job_get_statistics(other, &late));
      before += late.end_ns <= early.end_ns;
    }
    EXPECT_LT(before, waiting / 2) << "the lane may have some already; the rest must wait";
  }

  context context_;
  double *pinned_ = nullptr;
  gate *gate_ = nullptr;
  void *long_source_ = nullptr;
  buffer long_target_;
};

TEST_P(priorities, a_high_job_overtakes) {
  std::vector<job> low;
  sg_submit options = SG_SUBMIT_INIT;
  options.priority = -1;
  for (int i = 0; i < waiting; ++i) low.push_back(submit(i, options));
  options.priority = 1;
  const job urgent = submit(waiting, options);
  expect_overtaken(urgent, low);
}

// A submission has its stream's priority unless it sets its own.
TEST_P(priorities, a_high_stream_overtakes) {
  stream high;
  ASSERT_OK(create_stream(context_, 1, 0, high.out()));
  std::vector<job> normal;
  sg_submit options = SG_SUBMIT_INIT;
  for (int i = 0; i < waiting; ++i) normal.push_back(submit(i, options));
  options.stream = high;
  const job urgent = submit(waiting, options);
  expect_overtaken(urgent, normal);
}

// The order by data has precedence over priorities.
TEST_P(priorities, a_high_reader_waits_for_a_low_writer) {
  sg_submit options = SG_SUBMIT_INIT;
  options.priority = -1;
  sg_gemm_desc write = make_gemm(factor(), factor() + 1, pinned_ + 3, 1, 1, 1);
  write.alpha.re = 5;
  ASSERT_OK(sg_gemm_async(context_, &write, &options, nullptr));
  options.priority = 1;
  const sg_gemm_desc read = make_gemm(pinned_ + 3, factor(), pinned_ + 4, 1, 1, 1);
  ASSERT_OK(sg_gemm_async(context_, &read, &options, nullptr));
  open_gate();
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  EXPECT_EQ(5, pinned_[4]);
}

ON_EACH_DEVICE(priorities);
ON_EACH_DEVICE(order);

}  // namespace
}  // namespace sg_test
