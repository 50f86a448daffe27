// SPDX-License-Identifier: Apache-2.0
// One section at a time, each once, whichever thread executes it; a thread that holds the mutex executes the waiting
// sections in their order and up to its limit.
#include "base/combining_mutex.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <thread>
#include <vector>

namespace sg {
namespace {

using namespace std::chrono_literals;

TEST(combining_mutex, without_contention_a_thread_executes_its_own_section) {
  combining_mutex mutex;
  std::thread::id ran;
  mutex.run([&] { ran = std::this_thread::get_id(); });
  EXPECT_EQ(std::this_thread::get_id(), ran);
  mutex.run_here([&] { ran = {}; });
  EXPECT_EQ(std::thread::id{}, ran);
}

// The outcome of threads that waited together for a mutex which this one held.
struct outcome {
  std::vector<std::size_t> order;         // their numbers, in execution order
  std::vector<std::thread::id> executor;  // by number
  int fetched = 0;
};

// Each thread comes some time after the previous one, so that they queue in that order, unless the machine is too busy.
outcome with_waiting(std::size_t threads, const std::function<bool(std::size_t)> &is_here) {
  combining_mutex mutex;
  outcome result;
  result.executor.resize(threads);
  std::atomic<std::size_t> turn{0};
  std::atomic<bool> held{false};
  std::vector<std::thread> all;
  for (std::size_t t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      const auto section = [&, t] {
        result.order.push_back(t);
        result.executor[t] = std::this_thread::get_id();
      };
      while (!held.load() || turn.load() != t) std::this_thread::sleep_for(50us);
      turn.store(t + 1);
      if (is_here(t))
        mutex.run_here(section);
      else
        mutex.run(section, [&] { ++result.fetched; });
    });
  mutex.run([&] {
    held.store(true);
    while (turn.load() != threads) std::this_thread::sleep_for(50us);
    std::this_thread::sleep_for(2ms);  // the last one sleeps by now
  });
  for (std::thread &thread : all) thread.join();
  return result;
}

// Retried where threads may have come too late to wait.
template <class Expected>
bool happens(std::size_t threads, const std::function<bool(std::size_t)> &is_here, Expected &&expected) {
  for (int attempt = 0; attempt < 300; ++attempt)
    if (expected(with_waiting(threads, is_here))) return true;
  return false;
}

constexpr auto none_here = [](std::size_t) { return false; };

TEST(combining_mutex, the_holder_executes_waiting_sections_in_order) {
  const std::thread::id own = std::this_thread::get_id();
  EXPECT_TRUE(happens(3, none_here, [&](const outcome &now) {
    return now.order == std::vector<std::size_t>{0, 1, 2} && now.executor == std::vector<std::thread::id>(3, own);
  }));
}

TEST(combining_mutex, waiting_sections_are_prefetched) {
  EXPECT_TRUE(happens(3, none_here, [](const outcome &now) { return now.fetched == 2; })) << "all but the first";
}

TEST(combining_mutex, sections_bound_to_their_thread_are_not_combined) {
  const std::thread::id own = std::this_thread::get_id();
  for (int attempt = 0; attempt < 20; ++attempt)
    EXPECT_NE(own, with_waiting(1, [](std::size_t) { return true; }).executor[0]);
  EXPECT_TRUE(happens(
      3, [](std::size_t t) { return t == 1; },
      [&](const outcome &now) {
        return now.executor[0] == own && now.executor[1] != own && now.executor[2] == now.executor[1];
      }))
      << "it then executes the queued sections";
}

TEST(combining_mutex, the_holder_hands_over_at_its_limit) {
  constexpr std::size_t limit = combining_mutex::combining_limit;
  const std::thread::id own = std::this_thread::get_id();
  EXPECT_TRUE(happens(limit + 2, none_here, [&](const outcome &now) {
    return now.executor[limit - 1] == own && now.executor[limit] != own &&
           now.executor[limit + 1] == now.executor[limit];
  }));
}

TEST(combining_mutex, many_threads_one_section_at_a_time) {
  constexpr int threads = 8, rounds = 20'000;
  combining_mutex mutex;
  long sum = 0, inside = 0;  // not atomic: the mutex guards them
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < rounds; ++i) {
        const unsigned dice = random();
        bool entered = false;
        const auto section = [&] {
          EXPECT_EQ(0, inside++);
          ++sum;
          --inside;
          entered = true;
        };
        if (dice % 8 == 0)
          mutex.run_here(section);
        else
          mutex.run(section, [&] { EXPECT_FALSE(entered); });
        EXPECT_TRUE(entered);
        if (dice % 1024 == 1) std::this_thread::sleep_for(50us);
      }
    });
  for (std::thread &thread : all) thread.join();
  EXPECT_EQ(long{threads} * rounds, sum);
}

TEST(combining_mutex, waiters_of_long_sections_sleep_and_wake) {
  constexpr int threads = 4, rounds = 50;
  combining_mutex mutex;
  int sum = 0;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      const auto section = [&] {
        std::this_thread::sleep_for(200us);
        ++sum;
      };
      for (int i = 0; i < rounds; ++i) t % 2 ? mutex.run(section) : mutex.run_here(section);
    });
  for (std::thread &thread : all) thread.join();
  EXPECT_EQ(threads * rounds, sum);
}

}  // namespace
}  // namespace sg
