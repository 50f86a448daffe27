// SPDX-License-Identifier: Apache-2.0
// Job times where the device orders streams: the backend of ordered_backend.cpp reports the start and the end of a
// command that waits for another stream too early, by half of the time since the machine was started, and the library
// corrects them.
#include "native_stream.hpp"

namespace sg_test {
namespace {

sg_job_statistics times_of(const job &of) {
  sg_job_statistics seen = SG_JOB_STATISTICS_INIT;
  EXPECT_OK(sg_job_wait(of, SG_FOREVER, nullptr));
  EXPECT_OK(sg_job_get_statistics(of, &seen));
  return seen;
}

TEST(times, of_a_job_behind_one_of_another_stream) {
  const context on = open_context("ordered", 2);
  native_stream native;
  stream own, held;
  ASSERT_OK(sg_stream_create(on, nullptr, own.out()));
  ASSERT_OK(sg_stream_wrap(on, native.get(), held.out()));
  sg_submit behind_held = SG_SUBMIT_INIT, behind_own = SG_SUBMIT_INIT;
  behind_held.stream = held;
  behind_own.stream = own;
  const doubling twice;
  const matrix first = all(1);
  matrix middle = all(-1), last = all(-1);
  native.hold();
  const job one = twice.submit(on, middle, first, &behind_held);
  const job two = twice.submit(on, last, middle, &behind_own);
  native.release();
  const sg_job_statistics of_one = times_of(one), of_two = times_of(two);
  EXPECT_EQ(all(4), last);
  EXPECT_GE(of_two.start_ns, of_one.end_ns);
  EXPECT_GE(of_two.end_ns, of_two.start_ns);
  EXPECT_LE(of_two.busy_seconds, double(of_two.end_ns - of_two.start_ns) * 1e-9 + 1e-9);
}

// Partial GEMMs on two streams, and their sum on one of them, behind the other.
TEST(times, of_commands_of_one_job) {
  const context on = open_context("ordered", 2);
  constexpr std::int64_t size = 256;
  const std::vector<double> a(size * size, 1), b(size * size, 2);
  std::vector<double> c(size * size, -1);
  const sg_gemm_desc wanted = make_gemm(a.data(), b.data(), c.data(), size, size, size);
  sg_plan_options halves = SG_PLAN_OPTIONS_INIT;
  halves.split = SG_SPLIT_K;
  halves.parts = 2;
  halves.streams = 2;
  sg_submit options = SG_SUBMIT_INIT;
  options.plan = &halves;
  job made;
  ASSERT_OK(sg_gemm_async(on, &wanted, &options, made.out()));
  const sg_job_statistics seen = times_of(made);
  EXPECT_EQ(std::vector<double>(size * size, 2.0 * size), c);
  EXPECT_GE(seen.commands_run, 3);
  EXPECT_GT(seen.busy_seconds, 0);
  EXPECT_LE(seen.busy_seconds, 2 * double(seen.end_ns - seen.start_ns) * 1e-9) << "two streams";
  EXPECT_LT(seen.end_ns - seen.start_ns, seen.end_ns / 4) << "which excludes the time of the early report";
}

}  // namespace
}  // namespace sg_test
