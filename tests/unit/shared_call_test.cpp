// SPDX-License-Identifier: Apache-2.0
// Calls whose commands several threads compute: each command runs once, and the caller waits only for commands that
// others have started.
#include "backends/cpu/streams/shared_call.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace sg::cpu {
namespace {

// A command that calls a function of the test.
struct test_command {
  sg_backend_command header = {sizeof(test_command), SG_BACKEND_MARKER};
  std::function<sg_status()> does = [] { return SG_STATUS_OK; };
};

sg_status run_test_command(const sg_backend_command &what, workspace &) noexcept {
  return reinterpret_cast<const test_command &>(what).does();
}
constexpr operation test_operation = {SG_BACKEND_MARKER, sizeof(test_command), nullptr, run_test_command};

class shared_call : public testing::Test {
 protected:
  std::vector<test_command> commands(std::size_t count) {
    std::vector<test_command> all(count);
    pointers_.clear();
    for (test_command &each : all) pointers_.push_back(&each.header);
    return all;
  }
  shared_calls::call *open(bool timed = false) {
    return calls_.open(test_operation, pointers_.data(), static_cast<std::int32_t>(pointers_.size()), timed);
  }

  // False after minutes.
  template <class Condition>
  static bool comes_true(Condition &&condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    while (!condition() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    return condition();
  }

  shared_calls calls_;
  workspace space_;
  std::vector<const sg_backend_command *> pointers_;
};

TEST_F(shared_call, the_caller_alone_runs_all) {
  auto all = commands(5);
  std::vector<int> order;
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i].does = [&order, i] { return order.push_back(static_cast<int>(i)), SG_STATUS_OK; };
  EXPECT_FALSE(calls_.any());
  for (int round = 0; round < 3; ++round) {
    order.clear();
    shared_calls::call *const own = open();
    ASSERT_NE(own, nullptr);
    EXPECT_TRUE(calls_.any());
    EXPECT_EQ(SG_STATUS_OK, calls_.finish(*own, space_, nullptr));
    EXPECT_EQ((std::vector<int>{0, 1, 2, 3, 4}), order);
    EXPECT_FALSE(calls_.any());
    EXPECT_FALSE(calls_.run_one(space_));
  }
}

// Each of the two commands completes only once the other has started.
TEST_F(shared_call, two_threads_compute_at_the_same_time) {
  auto all = commands(2);
  std::atomic<int> begun{0};
  for (test_command &each : all)
    each.does = [&] {
      ++begun;
      return comes_true([&] { return begun == 2; }) ? SG_STATUS_OK : SG_STATUS_INTERNAL;
    };
  shared_calls::call *const own = open();
  std::thread helper([&] {
    workspace space;
    EXPECT_TRUE(calls_.run_one(space));
  });
  EXPECT_EQ(SG_STATUS_OK, calls_.finish(*own, space_, nullptr));
  helper.join();
}

TEST_F(shared_call, the_caller_waits_for_commands_that_others_started) {
  auto all = commands(2);
  std::atomic<bool> begun{false}, completed{false};
  all[0].does = [&] {
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    completed = true;
    return SG_STATUS_OK;
  };
  shared_calls::call *const own = open();
  std::thread helper([&] {
    workspace space;
    EXPECT_TRUE(calls_.run_one(space));
  });
  ASSERT_TRUE(comes_true([&] { return begun.load(); }));
  EXPECT_EQ(SG_STATUS_OK, calls_.finish(*own, space_, nullptr));
  EXPECT_TRUE(completed);
  helper.join();
}

TEST_F(shared_call, the_first_failure_by_order_is_the_status) {
  auto all = commands(6);
  all[4].does = [] { return SG_STATUS_INTERNAL; };
  all[2].does = [] { return SG_STATUS_OUT_OF_MEMORY; };
  int ran = 0;
  all[5].does = [&] { return ++ran, SG_STATUS_OK; };
  EXPECT_EQ(SG_STATUS_OUT_OF_MEMORY, calls_.finish(*open(), space_, nullptr));
  EXPECT_EQ(1, ran);
  // No state of it remains for the next call.
  all[2].does = all[4].does = [] { return SG_STATUS_OK; };
  EXPECT_EQ(SG_STATUS_OK, calls_.finish(*open(), space_, nullptr));
}

TEST_F(shared_call, the_busy_time_is_the_sum_of_all) {
  auto all = commands(3);
  for (test_command &each : all)
    each.does = [] { return std::this_thread::sleep_for(std::chrono::milliseconds(2)), SG_STATUS_OK; };
  std::int64_t busy_ns = -1;
  EXPECT_EQ(SG_STATUS_OK, calls_.finish(*open(true), space_, &busy_ns));
  EXPECT_GE(busy_ns, 6'000'000);
}

TEST_F(shared_call, has_limits) {
  auto all = commands(2);
  std::vector<shared_calls::call *> opened;
  while (shared_calls::call *const next = open()) {
    opened.push_back(next);
    ASSERT_LE(opened.size(), 64u);
  }
  EXPECT_GE(opened.size(), 8u);
  for (shared_calls::call *each : opened) EXPECT_EQ(SG_STATUS_OK, calls_.finish(*each, space_, nullptr));
  EXPECT_FALSE(calls_.any());
  EXPECT_EQ(nullptr, calls_.open(test_operation, pointers_.data(), 1, false));
  EXPECT_EQ(nullptr, calls_.open(test_operation, pointers_.data(), 1 << 16, false));
  EXPECT_EQ(SG_STATUS_OK, calls_.finish(*open(), space_, nullptr));
}

// Every command of every call runs once, and has completed when its call returns, whichever threads run it.
TEST_F(shared_call, many_callers_and_helpers) {
  constexpr int callers = 3, helpers = 3, rounds = 3000;
  std::atomic<bool> stop{false};
  std::vector<std::thread> helping, calling;
  for (int i = 0; i < helpers; ++i)
    helping.emplace_back([&] {
      workspace space;
      while (!stop) {
        if (!calls_.any() || !calls_.run_one(space)) std::this_thread::yield();
      }
    });
  for (int i = 0; i < callers; ++i)
    calling.emplace_back([&, i] {
      workspace space;
      for (int round = 0; round < rounds; ++round) {
        const auto count = static_cast<std::size_t>(2 + (round + i) % 15);
        std::vector<int> times(count, 0);  // not atomic: finish() orders them
        std::vector<test_command> all(count);
        std::vector<const sg_backend_command *> pointers;
        for (std::size_t c = 0; c < count; ++c) {
          all[c].does = [&times, c] { return ++times[c], SG_STATUS_OK; };
          pointers.push_back(&all[c].header);
        }
        shared_calls::call *const own =
            calls_.open(test_operation, pointers.data(), static_cast<std::int32_t>(count), false);
        ASSERT_NE(own, nullptr);
        ASSERT_EQ(SG_STATUS_OK, calls_.finish(*own, space, nullptr));
        ASSERT_EQ(std::vector<int>(count, 1), times);
      }
    });
  for (std::thread &each : calling) each.join();
  EXPECT_FALSE(calls_.any());
  stop = true;
  for (std::thread &each : helping) each.join();
}

}  // namespace
}  // namespace sg::cpu
