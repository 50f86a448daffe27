// SPDX-License-Identifier: Apache-2.0
// Blocking calls. The calling thread may compute short GEMMs itself; every rule of a job still holds.
#include <dirent.h>

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "support/harness.hpp"
#include "support/sanitizers.hpp"

namespace sg_test {
namespace {

class blocking : public on_each_device {
 protected:
  static constexpr int n = 8;
  std::vector<double> a_ = std::vector<double>(n * n, 1), b_ = std::vector<double>(n * n, 2),
                      c_ = std::vector<double>(n * n, -1);
  sg_gemm_desc desc() { return make_gemm(a_.data(), b_.data(), c_.data(), n, n, n); }
  // The calling thread may compute the second of two equal calls.
  void multiply_twice(const sg_gemm_desc &d) {
    for (int i = 0; i < 2; ++i) ASSERT_OK(sg_gemm(context_, &d, nullptr));
  }
};

TEST_P(blocking, consecutive_calls_add_to_one_result) {
  const sg_gemm_desc d = desc();
  for (int i = 0; i < (sanitized ? 200 : 1000); ++i) {
    c_.assign(c_.size(), std::numeric_limits<double>::quiet_NaN());
    ASSERT_OK(sg_gemm(context_, &d, nullptr));
    for (const double x : c_) ASSERT_EQ(2.0 * n, x);
  }
}

// Each call adds to the result of the previous one, whichever thread computes it.
TEST_P(blocking, are_ordered_with_jobs_by_their_memory) {
  sg_gemm_desc d = desc();
  d.beta.re = 1;
  c_.assign(c_.size(), 0);
  for (int i = 0; i < 200; ++i) {
    ASSERT_OK(sg_gemm_async(context_, &d, nullptr, nullptr));
    ASSERT_OK(sg_gemm(context_, &d, nullptr));
  }
  for (const double x : c_) ASSERT_EQ(400 * 2.0 * n, x);
}

TEST_P(blocking, wait_for_the_job_they_depend_on) {
  const gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  double doubled = 0, two = 2;
  const sg_gemm_desc d = make_gemm(gated.result(), &two, &doubled, 1, 1, 1);
  std::thread opens([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const_cast<gated_job &>(gated).open();
  });
  EXPECT_OK(sg_gemm(context_, &d, nullptr));
  EXPECT_EQ(2 * gated_job::expected, doubled);
  opens.join();
}

// Two threads that add to one result: each GEMM is atomic.
TEST_P(blocking, from_several_threads_are_atomic) {
  c_.assign(c_.size(), 0);
  sg_gemm_desc d = desc();
  d.beta.re = 1;
  constexpr int threads = 4, times = sanitized ? 50 : 300;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, own = d] {
      for (int i = 0; i < times; ++i) EXPECT_OK(sg_gemm(context_, &own, nullptr));
    });
  for (std::thread &each : all) each.join();
  for (const double x : c_) ASSERT_EQ(threads * times * 2.0 * n, x);
}

TEST_P(blocking, return_a_completed_job) {
  const sg_gemm_desc d = desc();
  sg_submit options = SG_SUBMIT_INIT;
  options.flags = SG_SUBMIT_WILL_WAIT;
  for (int i = 0; i < 5; ++i) {
    job made;
    ASSERT_OK(sg_gemm_async(context_, &d, &options, made.out()));
    ASSERT_OK(sg_job_wait(made, SG_FOREVER, nullptr));
    sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
    ASSERT_OK(sg_job_get_statistics(made, &statistics));
    EXPECT_EQ(statistics.commands, statistics.commands_run);
    EXPECT_EQ(2.0 * n * n * n, statistics.flops);
    EXPECT_GT(statistics.end_ns, 0);
    EXPECT_GE(statistics.end_ns, statistics.start_ns);
  }
}

TEST_P(blocking, post_completions_and_call_back) {
  queue posted;
  ASSERT_OK(sg_queue_create(context_, nullptr, posted.out()));
  const sg_gemm_desc d = desc();
  sg_submit options = SG_SUBMIT_INIT;
  options.queue = posted;
  for (std::uint64_t tag = 1; tag <= 3; ++tag) {
    options.tag = tag;
    ASSERT_OK(sg_gemm(context_, &d, &options));
    sg_completion completion;
    std::int32_t count = 0;
    ASSERT_OK(sg_queue_next_batch(posted, &completion, sizeof(sg_completion), 1, SG_FOREVER, &count));
    EXPECT_EQ(tag, completion.tag);
  }
}

// The library neither uses nor changes the application's rounding mode.
TEST_P(blocking, keep_the_callers_rounding_mode) {
  // Their sum is 1 in every rounding mode except upwards.
  std::vector<double> x{1, std::numeric_limits<double>::epsilon() / 4}, y{1, 1};
  double sum = 0;
  const sg_gemm_desc d = make_gemm(x.data(), y.data(), &sum, 1, 1, 2);
  multiply_twice(d);
  const double nearest = sum;
  ASSERT_EQ(0, std::fesetround(FE_UPWARD));
  multiply_twice(d);
  const int after = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(FE_UPWARD, after);
  EXPECT_EQ(nearest, sum);
}

TEST_P(blocking, waits_run_jobs_that_no_worker_has_started) {
  const int rounds = sanitized ? 40 : 200;
  for (int i = 0; i < rounds; ++i) {
    std::vector<double> results(32, -1);
    std::vector<job> jobs(results.size());
    const double three = 3, four = 4;
    for (std::size_t r = 0; r < results.size(); ++r) {
      const sg_gemm_desc d = make_gemm(&three, &four, &results[r], 1, 1, 1);
      ASSERT_OK(sg_gemm_async(context_, &d, nullptr, jobs[r].out()));
    }
    for (std::size_t r = results.size(); r-- > 0;) {
      ASSERT_OK(sg_job_wait(jobs[r], SG_FOREVER, nullptr));
      ASSERT_EQ(12, results[r]);
    }
  }
}

struct size {
  std::int64_t m, n, k;
};
// GEMMs that several cores share, and one that is too small for that.
constexpr size sizes[] = {{128, 128, 128}, {256, 192, 160}, {512, 512, 512},
                          {1000, 1, 1000}, {1, 1000, 1000}, {40, 40, 40}};

// Random numbers whose sums depend on the order of addition.
std::vector<double> random_numbers(std::int64_t count) {
  std::mt19937_64 from(static_cast<std::uint64_t>(count));
  std::uniform_real_distribution<double> next(-1, 1);
  std::vector<double> result(static_cast<std::size_t>(count));
  for (double &x : result) x = next(from);
  return result;
}

struct large_gemm {
  explicit large_gemm(size s)
      : a(random_numbers(s.m * s.k)),
        b(random_numbers(s.k * s.n)),
        c(static_cast<std::size_t>(s.m * s.n), -1),
        desc(make_gemm(a.data(), b.data(), c.data(), s.m, s.n, s.k)) {}
  std::vector<double> a, b, c;
  sg_gemm_desc desc;
};

TEST_P(blocking, large_gemms_match_the_reference) {
  for (const size &s : sizes) {
    large_gemm x(s);
    ASSERT_OK(sg_gemm(context_, &x.desc, nullptr));
    for (const auto &[i, j] : {std::pair{std::int64_t{0}, std::int64_t{0}}, {s.m - 1, s.n - 1}, {s.m / 2, s.n / 3}}) {
      double sum = 0;
      for (std::int64_t l = 0; l < s.k; ++l)
        sum += x.a[static_cast<std::size_t>(i * s.k + l)] * x.b[static_cast<std::size_t>(l * s.n + j)];
      EXPECT_NEAR(sum, x.c[static_cast<std::size_t>(i * s.n + j)], 1e-11 * double(s.k));
    }
  }
}

// The calling thread and idle cores compute the first call; a busy device may compute the next one.
TEST_P(blocking, give_the_same_bits_beside_other_jobs) {
  if (std::strcmp(GetParam(), "cpu") != 0) GTEST_SKIP() << "a blocked lane may block all others";
  const context context = open_context(GetParam(), 2);
  for (const size &s : sizes) {
    large_gemm x(s);
    ASSERT_OK(sg_gemm(context, &x.desc, nullptr));
    const std::vector<double> alone = x.c;
    gated_job gated(context);
    SKIP_WITHOUT_GATE(gated);
    ASSERT_TRUE(gated.running());
    for (int i = 0; i < 3; ++i) {
      x.c.assign(x.c.size(), -1);
      ASSERT_OK(sg_gemm(context, &x.desc, nullptr));
      ASSERT_EQ(0, std::memcmp(alone.data(), x.c.data(), alone.size() * sizeof(double)));
    }
    gated.open();
  }
}

TEST_P(blocking, give_the_same_bits_on_several_threads) {
  // Only the cpu shares a GEMM among cores; an emulated device's arithmetic takes long.
  const bool shares = std::strcmp(GetParam(), "cpu") == 0;
  const int times = sanitized || !shares ? 3 : 10;
  for (const size &s : sizes) {
    if (!shares && s.m * s.n * s.k > 256 * 256 * 256) continue;
    large_gemm first(s);
    ASSERT_OK(sg_gemm(context_, &first.desc, nullptr));
    std::vector<std::thread> all;
    for (int t = 0; t < 4; ++t)
      all.emplace_back([&] {
        large_gemm own(s);
        for (int i = 0; i < times; ++i) {
          own.c.assign(own.c.size(), -1);
          EXPECT_OK(sg_gemm(context_, &own.desc, nullptr));
          EXPECT_EQ(0, std::memcmp(first.c.data(), own.c.data(), own.c.size() * sizeof(double)));
        }
      });
    for (std::thread &each : all) each.join();
  }
}

// Large and small GEMMs and jobs that each add to one result.
TEST_P(blocking, large_gemms_are_ordered_with_jobs) {
  constexpr std::int64_t side = 128;
  std::vector<double> a(side * side, 1), b(side * side, 1), c(side * side, 0);
  sg_gemm_desc large = make_gemm(a.data(), b.data(), c.data(), side, side, side);
  sg_gemm_desc small = make_gemm(a.data(), b.data(), c.data(), 8, 8, 8);
  small.a.ld = small.b.ld = small.c.ld = side;
  large.beta.re = small.beta.re = 1;
  constexpr int times = sanitized ? 10 : 50;
  for (int i = 0; i < times; ++i) {
    ASSERT_OK(sg_gemm_async(context_, &small, nullptr, nullptr));
    ASSERT_OK(sg_gemm(context_, &large, nullptr));
    ASSERT_OK(sg_gemm(context_, &large, nullptr));
    ASSERT_OK(sg_gemm_async(context_, &large, nullptr, nullptr));
    ASSERT_OK(sg_gemm(context_, &small, nullptr));
  }
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  for (std::int64_t i = 0; i < side; ++i)
    for (std::int64_t j = 0; j < side; ++j)
      ASSERT_EQ(times * (3.0 * side + (i < 8 && j < 8 ? 2 * 8 : 0)), c[static_cast<std::size_t>(i * side + j)]);
}

TEST_P(blocking, large_gemms_have_statistics) {
  for (const size &s : sizes) {
    large_gemm x(s);
    sg_submit options = SG_SUBMIT_INIT;
    options.flags = SG_SUBMIT_WILL_WAIT;
    job made;
    ASSERT_OK(sg_gemm_async(context_, &x.desc, &options, made.out()));
    ASSERT_OK(sg_job_wait(made, SG_FOREVER, nullptr));
    sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
    ASSERT_OK(sg_job_get_statistics(made, &statistics));
    EXPECT_EQ(statistics.commands, statistics.commands_run);
    EXPECT_GT(statistics.busy_seconds, 0);
    EXPECT_GT(statistics.end_ns, statistics.start_ns);
  }
}

// Nanoseconds that the cpu device's workers have run.
std::uint64_t run_time_of_workers() {
  std::uint64_t sum = 0;
  DIR *const tasks = opendir("/proc/self/task");
  if (!tasks) return 0;
  while (const dirent *const task = readdir(tasks)) {
    const std::string folder = std::string("/proc/self/task/") + task->d_name;
    char name[32] = "";
    if (std::FILE *const file = std::fopen((folder + "/comm").c_str(), "r")) {
      if (!std::fgets(name, sizeof name, file)) name[0] = 0;
      std::fclose(file);
    }
    if (std::strncmp(name, "streamgemm-cpu", 14) != 0) continue;
    if (std::FILE *const file = std::fopen((folder + "/schedstat").c_str(), "r")) {
      unsigned long long ns = 0;
      if (std::fscanf(file, "%llu", &ns) == 1) sum += ns;
      std::fclose(file);
    }
  }
  closedir(tasks);
  return sum;
}

// Its calling thread computes a call of less than a millisecond; workers must have computed a good part of many.
TEST_P(blocking, large_gemms_are_computed_on_several_cores) {
  if (std::strcmp(GetParam(), "cpu") != 0) GTEST_SKIP() << "only threads of the cpu can be seen";
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "there is one core";
  large_gemm x({128, 128, 128});
  ASSERT_OK(sg_gemm(context_, &x.desc, nullptr));
  const std::uint64_t before = run_time_of_workers();
  if (before == 0) GTEST_SKIP() << "the kernel does not report the threads' times";
  constexpr std::uint64_t enough_ns = 20'000'000;  // wake-ups alone take some microseconds each
  std::uint64_t run_ns = 0;
  for (int calls = 0; calls < 20000 && run_ns < enough_ns; ++calls) {
    ASSERT_OK(sg_gemm(context_, &x.desc, nullptr));
    if (calls % 100 == 0) run_ns = run_time_of_workers() - before;
  }
  EXPECT_GE(run_ns, enough_ns);
}

ON_EACH_DEVICE(blocking);

}  // namespace
}  // namespace sg_test
