// SPDX-License-Identifier: Apache-2.0
// A caller that requests a step gets one, and returns however often others request one.
#include "run/dispatch/step_combiner.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace sg {
namespace {

class owner final : public object {
 public:
  owner() : object(object_type::context) {}
  ~owner() override = default;
};

template <class Condition>
void wait_until(Condition &&holds) {
  while (!holds()) std::this_thread::yield();
}

TEST(step_combiner, a_caller_returns_while_others_keep_requesting) {
  owner keeper;
  std::atomic<bool> without_end = true;
  std::atomic<int> steps_of_others = 0;
  const auto asking = std::this_thread::get_id();
  std::function<void()> ask;
  step_combiner tried(
      [&] {
        if (std::this_thread::get_id() != asking) ++steps_of_others;
        if (without_end) ask();
      },
      keeper);
  ask = [&] { tried.request(); };
  for (int round = 0; round < 3; ++round) {
    without_end = true;
    const int before = steps_of_others;
    tried.request();
    wait_until([&] { return steps_of_others > before + 100; });
    EXPECT_TRUE(tried.is_working());
    EXPECT_FALSE(keeper.has_one_ref()) << "its operands are kept";
    without_end = false;
    wait_until([&] { return !tried.is_working() && keeper.has_one_ref(); });
  }
}

TEST(step_combiner, a_step_starts_after_each_request) {
  owner keeper;
  std::atomic<int> news = 0, seen = 0, at_work = 0;
  step_combiner tried(
      [&] {
        EXPECT_EQ(0, at_work++);
        seen = news.load();
        --at_work;
      },
      keeper);
  constexpr int threads = 4, each = 20'000;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&] {
      for (int i = 0; i < each; ++i) {
        ++news;
        tried.request();
      }
    });
  for (std::thread &thread : all) thread.join();
  wait_until([&] { return !tried.is_working() && keeper.has_one_ref(); });
  EXPECT_EQ(threads * each, seen);
}

TEST(step_combiner, without_contention_steps_run_inline) {
  owner keeper;
  std::vector<std::thread::id> where;
  step_combiner tried([&] { where.push_back(std::this_thread::get_id()); }, keeper);
  for (int i = 0; i < 3; ++i) tried.request();
  EXPECT_EQ(std::vector(3, std::this_thread::get_id()), where);
}

}  // namespace
}  // namespace sg
