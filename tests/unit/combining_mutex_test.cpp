// SPDX-License-Identifier: Apache-2.0
// One section at a time, each once, whoever executes it; a thread that holds the mutex executes those that wait.
#include "base/combining_mutex.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

namespace sg {
namespace {

TEST(combining_mutex, alone_a_thread_executes_its_own) {
  combining_mutex mutex;
  std::thread::id ran;
  mutex.run([&] { ran = std::this_thread::get_id(); });
  EXPECT_EQ(std::this_thread::get_id(), ran);
  mutex.run_here([&] { ran = {}; });
  EXPECT_EQ(std::thread::id{}, ran);
}

// Holds the mutex until another thread waits for it, as far as time can tell, and returns who executed that one's
// section.
template <class Enter>
std::thread::id executor_of(Enter &&enter, std::thread::id &waiting) {
  combining_mutex mutex;
  std::atomic<bool> held{false}, comes{false};
  std::thread::id ran;
  std::thread other([&] {
    while (!held.load()) std::this_thread::yield();
    comes.store(true);
    enter(mutex, [&] { ran = std::this_thread::get_id(); });
  });
  waiting = other.get_id();
  mutex.run([&] {
    held.store(true);
    while (!comes.load()) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  });
  other.join();
  return ran;
}

TEST(combining_mutex, who_holds_it_executes_the_section_of_who_waits) {
  std::thread::id waiting, ran;
  for (int attempt = 0; attempt < 1000 && ran != std::this_thread::get_id(); ++attempt)
    ran = executor_of([](combining_mutex &mutex, auto section) { mutex.run(section); }, waiting);
  EXPECT_EQ(std::this_thread::get_id(), ran);
}

TEST(combining_mutex, but_not_one_that_is_to_run_on_its_own_thread) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    std::thread::id waiting;
    EXPECT_EQ(executor_of([](combining_mutex &mutex, auto section) { mutex.run_here(section); }, waiting), waiting);
  }
}

TEST(combining_mutex, what_is_fetched_is_fetched_before_its_section) {
  constexpr int threads = 4, rounds = 20'000;
  combining_mutex mutex;
  std::atomic<long> fetched{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        bool entered = false;
        mutex.run([&] { entered = true; },
                  [&] {
                    EXPECT_FALSE(entered);
                    fetched.fetch_add(1);
                  });
        EXPECT_TRUE(entered);
      }
    });
  for (std::thread &thread : all) thread.join();
  EXPECT_LE(fetched.load(), long{threads} * rounds);
}

TEST(combining_mutex, many_threads_one_section_at_a_time) {
  constexpr int threads = 8, rounds = 20'000;
  combining_mutex mutex;
  long sum = 0, inside = 0;  // plain: the mutex guards them
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      const auto section = [&] {
        EXPECT_EQ(0, inside++);
        ++sum;
        --inside;
      };
      for (int i = 0; i < rounds; ++i) {
        const unsigned dice = random();
        if (dice % 8 == 0)
          mutex.run_here(section);
        else
          mutex.run(section);
        if (dice % 1024 == 1) std::this_thread::sleep_for(std::chrono::microseconds(50));  // others wait, and sleep
      }
    });
  for (std::thread &thread : all) thread.join();
  EXPECT_EQ(long{threads} * rounds, sum);
}

TEST(combining_mutex, long_sections_put_others_to_sleep_and_wake_them) {
  constexpr int threads = 4, rounds = 50;
  combining_mutex mutex;
  int sum = 0;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      const auto section = [&] {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        ++sum;
      };
      for (int i = 0; i < rounds; ++i) t % 2 ? mutex.run(section) : mutex.run_here(section);
    });
  for (std::thread &thread : all) thread.join();
  EXPECT_EQ(threads * rounds, sum);
}

}  // namespace
}  // namespace sg
