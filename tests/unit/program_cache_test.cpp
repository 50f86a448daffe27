// SPDX-License-Identifier: Apache-2.0
// The shared map of programs: one for each problem, even for concurrent callers; entries are evicted one at a time.
#include "run/program/program_cache.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "problems.hpp"

namespace sg {
namespace {

using program_ref = std::shared_ptr<const program>;

class programs : public testing::Test {
 protected:
  program_ref of(std::int64_t m, const plan_request &request = {}) {
    const problem p = test::make({.m = m});
    return cache_.look_up(gemm_form(p), request, machine_, false);
  }
  const machine_model machine_{.devices = {test::h200()}};
  program_cache cache_{1};
};

TEST_F(programs, are_one_for_each_problem_and_request) {
  const program_ref first = of(13);
  EXPECT_EQ(first, of(13));
  EXPECT_NE(first, of(14));
  plan_request request;
  request.streams = 2;
  EXPECT_NE(first, of(13, request));
}

TEST_F(programs, are_planned_once_for_all_threads_that_ask) {
  for (std::int64_t m = 100; m < 140; ++m) {
    std::array<program_ref, 8> seen;
    std::vector<std::thread> threads;
    for (program_ref &each : seen) threads.emplace_back([&] { each = of(m); });
    for (std::thread &each : threads) each.join();
    for (const program_ref &each : seen) EXPECT_EQ(seen[0], each);
  }
}

TEST_F(programs, of_refused_problems_leave_nothing_to_wait_for) {
  test::problem_form large{.m = 60000, .n = 60000, .k = 60000};
  large.a = large.b = large.c = SG_MEMORY_PAGEABLE;
  const problem p = test::make(large);
  plan_request request;
  request.memory_limit = 1;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] { EXPECT_THROW(cache_.look_up(gemm_form(p), request, machine_, false), error); });
  for (std::thread &each : threads) each.join();
}

TEST_F(programs, that_are_used_stay_when_others_are_evicted) {
  const program_ref used = of(1), left = of(2);
  const std::weak_ptr<const program> evicted = of(3);
  for (std::int64_t m = 4; m < std::int64_t(program_cache::most_entries) + 4; ++m) {
    of(m);
    ASSERT_EQ(used, of(1));
  }
  EXPECT_TRUE(evicted.expired());
  EXPECT_NE(left, of(2)) << "its user keeps it, the cache does not";
}

}  // namespace
}  // namespace sg
