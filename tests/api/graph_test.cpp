// SPDX-License-Identifier: Apache-2.0
// Graphs: recorded submissions run as if submitted, any number of times, with changes between runs.
#include <array>
#include <cmath>
#include <cstring>

#include "support/harness.hpp"

namespace sg_test {
namespace {

class graphs : public on_each_device {
 protected:
  void SetUp() override {
    on_each_device::SetUp();
    ASSERT_OK(sg_graph_create(context_, &graph_));
    record_.graph = graph_;
  }
  void TearDown() override { EXPECT_OK(sg_graph_release(graph_)); }

  void record(const sg_gemm_desc &desc) { ASSERT_OK(sg_gemm_async(context_, &desc, &record_, nullptr)); }
  void run() {
    job all;
    ASSERT_OK(sg_graph_run_async(graph_, nullptr, all.out()));
    ASSERT_OK(sg_job_wait(all, SG_FOREVER, nullptr));
  }

  sg_graph *graph_ = nullptr;
  sg_submit record_ = SG_SUBMIT_INIT;
};

TEST_P(graphs, recording_runs_nothing) {
  double a = 2, b = 3, c = -1;
  sg_job *none = reinterpret_cast<sg_job *>(1);
  const sg_gemm_desc desc = make_gemm(&a, &b, &c, 1, 1, 1);
  ASSERT_OK(sg_gemm_async(context_, &desc, &record_, &none));
  EXPECT_EQ(nullptr, none);
  ASSERT_OK(sg_gemm(context_, &desc, &record_)) << "a blocking call records too";
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  EXPECT_EQ(-1, c);
  std::int32_t size = 0;
  ASSERT_OK(sg_graph_submission_count(graph_, &size));
  EXPECT_EQ(2, size);
  run();
  EXPECT_EQ(6, c);
}

TEST_P(graphs, operands_order_recorded_submissions) {
  using matrix = std::array<double, 4>;
  const matrix growth = {1, 1, 1, 0};
  std::vector<matrix> x(30, matrix{});
  x[0] = {1, 0, 0, 1};
  for (std::size_t i = 0; i + 1 < x.size(); ++i)
    record(make_gemm(x[i].data(), growth.data(), x[i + 1].data(), 2, 2, 2));
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 1; i < x.size(); ++i) x[i] = {};
    run();
    EXPECT_EQ(514229.0, x[29][1]) << "the 29th Fibonacci number, round " << round;
  }
}

TEST_P(graphs, runs_follow_each_other_and_other_submissions) {
  double c = 1, three = 3, one = 1;
  sg_gemm_desc triple = make_gemm(&three, &one, &c, 1, 1, 1);  // c = 3 + 2 c
  triple.beta.re = 2;
  record(triple);
  double expected = 1;
  std::vector<job> jobs(20);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (i % 3 == 2)
      ASSERT_OK(sg_gemm_async(context_, &triple, nullptr, jobs[i].out()));
    else
      ASSERT_OK(sg_graph_run_async(graph_, nullptr, jobs[i].out()));
    expected = 3 + 2 * expected;
  }
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  for (job &each : jobs) EXPECT_OK(sg_job_query(each, nullptr));
  EXPECT_EQ(expected, c);
}

TEST_P(graphs, streams_order_recorded_submissions) {
  stream in;
  ASSERT_OK(sg_stream_create(context_, nullptr, in.out()));
  record_.stream = in;
  record_.flags = SG_SUBMIT_UNTRACKED;  // so that only the stream orders them
  double c = 0, one = 1;
  std::vector<double> addends(25);
  double expected = 0;
  for (std::size_t i = 0; i < addends.size(); ++i) {
    addends[i] = double(i);
    sg_gemm_desc desc = make_gemm(&addends[i], &one, &c, 1, 1, 1);
    desc.beta.re = 3;
    record(desc);
    expected = expected * 3 + double(i);
  }
  run();
  EXPECT_EQ(expected, c);
}

// The flag is a promise about other jobs, so what the run itself consists of keeps its order.
TEST_P(graphs, untracked_runs_keep_their_own_order) {
  constexpr std::size_t n = 300;
  const std::vector<double> a(n * n, 1);
  std::vector<double> x(n * n), y(n * n);
  record(make_gemm(a.data(), a.data(), x.data(), n, n, n));
  double one = 1;
  record(make_gemm(&x.back(), &one, &y.back(), 1, 1, 1));
  record(make_gemm(&y.back(), &one, &y.front(), 1, 1, 1));
  sg_submit untracked = SG_SUBMIT_INIT;
  untracked.flags = SG_SUBMIT_UNTRACKED;
  for (int round = 0; round < 10; ++round) {
    std::fill(x.begin(), x.end(), -1);
    y.front() = y.back() = -1;
    job all;
    ASSERT_OK(sg_graph_run_async(graph_, &untracked, all.out()));
    ASSERT_OK(sg_job_wait(all, SG_FOREVER, nullptr));
    ASSERT_EQ(double(n), y.front()) << round;
  }
}

TEST_P(graphs, many_small_gemms) {
  constexpr std::size_t count = 300, n = 9;
  std::vector<double> a(count * n * n), b(count * n * n), c(count * n * n, NAN);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = double(i % 11) - 5, b[i] = double(i % 7) - 3;
  for (std::size_t i = 0; i < count; ++i) record(make_gemm(&a[i * n * n], &b[i * n * n], &c[i * n * n], n, n, n));
  for (int round = 0; round < 2; ++round) {
    std::fill(c.begin(), c.end(), NAN);
    run();
    for (std::size_t p = 0; p < count; ++p)
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) {
          double sum = 0;
          for (std::size_t l = 0; l < n; ++l) sum += a[p * n * n + i * n + l] * b[p * n * n + l * n + j];
          ASSERT_EQ(sum, c[p * n * n + i * n + j]) << p << " " << i << " " << j;
        }
  }
}

TEST_P(graphs, pointers_scalars_and_batch_change) {
  double a[3] = {2, 5, 7}, b = 10, c[3] = {}, other[3] = {};
  record(make_gemm(&a[0], &b, &c[0], 1, 1, 1));
  run();
  EXPECT_EQ(20, c[0]);
  sg_gemm_desc changed = make_gemm(&a[1], &b, &other[0], 1, 1, 1);
  changed.alpha.re = 3;
  ASSERT_OK(update_recorded(graph_, 0, SG_OPERATION_GEMM, &changed));
  c[0] = 0;
  run();
  EXPECT_EQ(0, c[0]);
  EXPECT_EQ(150, other[0]);
  changed = make_gemm(&a[0], &b, &other[0], 1, 1, 1);
  changed.batch = 3;
  changed.stride_a = changed.stride_c = 1;
  ASSERT_OK(update_recorded(graph_, 0, SG_OPERATION_GEMM, &changed));
  run();
  EXPECT_EQ(20, other[0]);
  EXPECT_EQ(50, other[1]);
  EXPECT_EQ(70, other[2]);
  void *a_items[2] = {&a[2], &a[0]}, *c_items[2] = {&c[1], &c[2]}, *b_items[2] = {&b, &b};
  changed.batch = 2;
  changed.a_array = a_items;
  changed.b_array = b_items;
  changed.c_array = c_items;
  ASSERT_OK(update_recorded(graph_, 0, SG_OPERATION_GEMM, &changed));
  run();
  EXPECT_EQ(70, c[1]);
  EXPECT_EQ(20, c[2]);
}

TEST_P(graphs, copies_are_recorded_and_changed) {
  double from[2] = {1, 2}, to[2] = {}, one = 1, c = 0;
  ASSERT_OK(sg_copy_async(context_, &to[0], &from[0], sizeof(double), &record_, nullptr));
  record(make_gemm(&to[0], &one, &c, 1, 1, 1));  // after the copy, by its operand
  run();
  EXPECT_EQ(1, c);
  sg_copy_desc changed = SG_COPY_DESC_INIT;
  changed.dst = &to[0], changed.src = &from[1], changed.width = sizeof(double);
  ASSERT_OK(update_recorded(graph_, 0, SG_OPERATION_COPY, &changed));
  run();
  EXPECT_EQ(2, c);
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, update_recorded(graph_, 1, SG_OPERATION_COPY, &changed));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "index is 1"));
}

// A backend's graph would read such memory when it is made, or not at all.
TEST_P(graphs, copies_of_ordinary_memory_are_not_in_a_graph_of_the_device) {
  double from = 1, to = 0;
  ASSERT_OK(sg_copy_async(context_, &to, &from, sizeof from, &record_, nullptr));
  for (; from < 4; ++from) {
    job all;
    ASSERT_OK(sg_graph_run_async(graph_, nullptr, all.out()));
    ASSERT_OK(sg_job_wait(all, SG_FOREVER, nullptr));
    EXPECT_EQ(from, to);
    sg_job_statistics seen = SG_JOB_STATISTICS_INIT;
    ASSERT_OK(sg_job_get_statistics(all, &seen));
    EXPECT_STRNE("graph of the device", seen.strategy);
  }
}

TEST_P(graphs, branches_meet_on_the_device) {
  constexpr std::size_t bytes = 4 * sizeof(double);
  buffer memory;
  void *data = nullptr;
  ASSERT_OK(sg_buffer_create(context_, 4 * bytes, nullptr, memory.out()));
  ASSERT_OK(sg_buffer_data(memory, &data));
  auto *const a = static_cast<double *>(data), *square = a + 4, *copy = a + 8, *cube = a + 12;
  record(make_gemm(a, a, square, 2, 2, 2));
  ASSERT_OK(sg_copy_async(context_, copy, a, bytes, &record_, nullptr));
  record(make_gemm(square, copy, cube, 2, 2, 2));
  for (double r = 2; r < 6; ++r) {
    const double diagonal[4] = {r, 0, 0, r};
    double result[4] = {};
    job there, back;
    ASSERT_OK(sg_copy_async(context_, a, diagonal, bytes, nullptr, there.out()));
    run();
    ASSERT_OK(sg_copy_async(context_, result, cube, bytes, nullptr, back.out()));
    ASSERT_OK(sg_job_wait(back, SG_FOREVER, nullptr));
    EXPECT_EQ(r * r * r, result[3]);
  }
}

TEST_P(graphs, a_refused_change_leaves_the_graph_unchanged) {
  double a[4] = {1, 2, 3, 4}, b[4] = {1, 0, 0, 1}, c[4] = {};
  record(make_gemm(a, b, c, 2, 2, 2));
  sg_gemm_desc smaller = make_gemm(a, b, c, 1, 2, 2);
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, update_recorded(graph_, 0, SG_OPERATION_GEMM, &smaller));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "sizes"));
  sg_gemm_desc fine = make_gemm(a, b, c, 2, 2, 2);
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, update_recorded(graph_, 1, SG_OPERATION_GEMM, &fine));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "index is 1"));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, update_recorded(graph_, -1, SG_OPERATION_GEMM, &fine));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, update_recorded(graph_, 0, SG_OPERATION_GEMM, nullptr));
  fine.c.data = nullptr;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, update_recorded(graph_, 0, SG_OPERATION_GEMM, &fine));
  run();
  EXPECT_EQ(4, c[3]);
}

TEST_P(graphs, after_the_first_run_nothing_is_recorded) {
  double a = 2, b = 3, c = 0;
  const sg_gemm_desc desc = make_gemm(&a, &b, &c, 1, 1, 1);
  record(desc);
  run();
  EXPECT_STATUS(SG_STATUS_BUSY, sg_gemm_async(context_, &desc, &record_, nullptr));
}

TEST_P(graphs, an_empty_graph_succeeds) { run(); }

// Recorded as several commands; the job records used to check it are reused afterwards.
TEST_P(graphs, a_split_gemm_is_recorded) {
  constexpr std::int64_t n = 512;
  std::vector<double> a(n * n), b(n * n), c(n * n, NAN);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = double(i % 5), b[i] = double(i % 3);
  record(make_gemm(a.data(), b.data(), c.data(), n, n, n));
  double x = 2, y = 3, z = 0;
  const sg_gemm_desc small = make_gemm(&x, &y, &z, 1, 1, 1);
  for (int i = 0; i < 3; ++i) ASSERT_OK(sg_gemm(context_, &small, nullptr));
  EXPECT_EQ(6, z);
  for (int round = 0; round < 2; ++round) {
    std::fill(c.begin(), c.end(), NAN);
    run();
    for (const std::int64_t i : {std::int64_t{0}, std::int64_t{200}, n - 1})
      for (const std::int64_t j : {std::int64_t{0}, std::int64_t{333}, n - 1}) {
        double sum = 0;
        for (std::int64_t l = 0; l < n; ++l) sum += a[std::size_t(i * n + l)] * b[std::size_t(l * n + j)];
        EXPECT_EQ(sum, c[std::size_t(i * n + j)]) << i << " " << j;
      }
  }
}

TEST_P(graphs, wrong_submissions_are_refused) {
  double a = 2, b = 3, c = 0;
  const sg_gemm_desc desc = make_gemm(&a, &b, &c, 1, 1, 1);
  job before;
  ASSERT_OK(sg_gemm_async(context_, &desc, nullptr, before.out()));
  ASSERT_OK(sg_job_wait(before, SG_FOREVER, nullptr));
  sg_job *const list[] = {before};
  sg_submit options = record_;
  options.after = list;
  options.after_count = 1;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm_async(context_, &desc, &options, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "submit->after_count"));
  queue completions;
  ASSERT_OK(sg_queue_create(context_, nullptr, completions.out()));
  options = record_;
  options.queue = completions;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm_async(context_, &desc, &options, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "submit->queue"));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_run_async(graph_, &record_, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "submit->graph"));
  context other = open_context(GetParam());
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm_async(other, &desc, &record_, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "submit->graph"));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_submission_count(graph_, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_create(context_, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_graph_run_async(reinterpret_cast<sg_graph *>(12345), nullptr, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_graph_release(reinterpret_cast<sg_graph *>(12345)));
}

// The run is submitted behind a blocked job on its stream; it posts one completion and can be cancelled.
TEST_P(graphs, a_run_is_a_job_like_others) {
  if (std::string(GetParam()) != "cpu") GTEST_SKIP() << "a gate blocks a worker of the cpu";
  stream in;
  ASSERT_OK(sg_stream_create(context_, nullptr, in.out()));
  sg_submit options = SG_SUBMIT_INIT;
  options.stream = in;
  gated_job gated(context_, &options);
  SKIP_WITHOUT_GATE(gated);
  double a = 2, b = 3, c = 0;
  record(make_gemm(&a, &b, &c, 1, 1, 1));
  queue completions;
  ASSERT_OK(sg_queue_create(context_, nullptr, completions.out()));
  options.queue = completions;
  options.tag = 77;
  job first, second;
  ASSERT_OK(sg_graph_run_async(graph_, &options, first.out()));
  ASSERT_OK(sg_graph_run_async(graph_, &options, second.out()));
  EXPECT_STATUS(SG_STATUS_TIMEOUT, sg_job_wait(first, 5'000'000, nullptr));
  ASSERT_OK(sg_job_cancel(second));
  gated.open();
  EXPECT_OK(sg_job_wait(first, SG_FOREVER, nullptr));
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(second, SG_FOREVER, nullptr));
  EXPECT_EQ(6, c);
  for (int i = 0; i < 2; ++i) {
    sg_completion seen{};
    std::int32_t count = 0;
    ASSERT_OK(sg_queue_next_batch(completions, &seen, sizeof(sg_completion), 1, SG_FOREVER, &count));
    EXPECT_EQ(77u, seen.tag);
  }
}

TEST_P(graphs, released_while_it_runs) {
  double a = 2, b = 3, c = 0;
  sg_graph *brief = nullptr;
  ASSERT_OK(sg_graph_create(context_, &brief));
  sg_submit options = SG_SUBMIT_INIT;
  options.graph = brief;
  const sg_gemm_desc desc = make_gemm(&a, &b, &c, 1, 1, 1);
  ASSERT_OK(sg_gemm_async(context_, &desc, &options, nullptr));
  job all;
  ASSERT_OK(sg_graph_run_async(brief, nullptr, all.out()));
  ASSERT_OK(sg_graph_release(brief));
  ASSERT_OK(sg_job_wait(all, SG_FOREVER, nullptr));
  EXPECT_EQ(6, c);
}

// A failed child fails the run, which names it; its dependents do not run; independent children do.
TEST(graph_failures, a_run_fails_like_its_first_failed_child) {
  context faulty = open_context("sim:h200?fail-launch=2");
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(faulty, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  double a = 2, b = 3, c[3] = {-1, -1, -1};
  const sg_gemm_desc first = make_gemm(&a, &b, &c[0], 1, 1, 1), second = make_gemm(&c[0], &b, &c[1], 1, 1, 1),
                     third = make_gemm(&c[1], &b, &c[2], 1, 1, 1);
  for (const sg_gemm_desc *each : {&first, &second, &third}) ASSERT_OK(sg_gemm_async(faulty, each, &record, nullptr));
  job all;
  ASSERT_OK(sg_graph_run_async(graph, nullptr, all.out()));
  EXPECT_STATUS(SG_STATUS_BACKEND_FAILURE, sg_job_wait(all, SG_FOREVER, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "submission 1 of the graph")) << sg_last_error_message();
  EXPECT_EQ(6, c[0]);
  EXPECT_EQ(-1, c[2]);
  job again;
  ASSERT_OK(sg_graph_run_async(graph, nullptr, again.out()));
  EXPECT_OK(sg_job_wait(again, SG_FOREVER, nullptr)) << "only the second launch should fail";
  EXPECT_EQ(54, c[2]);
  EXPECT_OK(sg_graph_release(graph));
}

ON_EACH_DEVICE(graphs);

}  // namespace
}  // namespace sg_test
