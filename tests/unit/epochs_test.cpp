// SPDX-License-Identifier: Apache-2.0
// A thread that waits for all jobs in flight is woken once they have completed: always, and not by every completion.
#include "run/order/epochs.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

namespace sg {
namespace {

constexpr std::int64_t far_too_long_ns = 20'000'000'000;

// As a context uses epochs: jobs are counted in under a lock, complete on any thread, and threads wait for all earlier
// jobs.
class jobs_in_flight {
 public:
  std::uint32_t begin() {
    const std::lock_guard lock(lock_);
    return epochs_.count_in();
  }
  void end(std::uint32_t epoch, std::int64_t count = 1) { epochs_.completed(epoch, count); }

  // False: this thread was not woken in time.
  bool wait_for_all() {
    std::optional<std::uint32_t> mine;
    return sleep([&] {
             if (!mine) mine = epochs_.present();
             return epochs_.watch_closed(*mine);
           }) &&
           sleep([&] { return epochs_.watch_completed_up_to(*mine); });
  }
  std::uint32_t wakings() const { return epochs_.wakings(); }
  int sleeps() const { return sleeps_.load(); }

 private:
  template <class Watched>
  bool sleep(Watched &&watched) {
    const deadline until(far_too_long_ns);
    const auto holds = [&] {
      const std::lock_guard lock(lock_);
      return watched();
    };
    for (std::uint32_t seen = epochs_.wakings(); !holds(); seen = epochs_.wakings()) {
      sleeps_.fetch_add(1);
      epochs_.sleep(seen, until);
      if (until.passed()) return false;  // even if all have completed: it should have been woken
    }
    return true;
  }

  std::mutex lock_;
  epochs epochs_;
  std::atomic<int> sleeps_{0};
};

void sleep_until(const jobs_in_flight &all, int sleeps) {
  while (all.sleeps() < sleeps) std::this_thread::yield();
}

TEST(epochs, waiting_for_no_jobs_returns_at_once) {
  jobs_in_flight all;
  EXPECT_TRUE(all.wait_for_all());
  EXPECT_EQ(0, all.sleeps());
}

TEST(epochs, in_order_completions_wake_once) {
  jobs_in_flight all;
  std::vector<std::uint32_t> jobs;
  for (int i = 0; i < 1000; ++i) jobs.push_back(all.begin());  // of several epochs
  ASSERT_NE(jobs.front(), jobs.back());
  std::thread waits([&] { EXPECT_TRUE(all.wait_for_all()); });
  sleep_until(all, 1);
  for (const std::uint32_t epoch : jobs) {
    EXPECT_EQ(0u, all.wakings());
    all.end(epoch);
  }
  waits.join();
  EXPECT_EQ(1u, all.wakings());
}

TEST(epochs, out_of_order_completions) {
  jobs_in_flight all;
  std::vector<std::uint32_t> jobs;
  for (int i = 0; i < 1000; ++i) jobs.push_back(all.begin());
  std::thread waits([&] { EXPECT_TRUE(all.wait_for_all()); });
  sleep_until(all, 1);
  for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) all.end(*job);
  waits.join();
  EXPECT_GE(static_cast<std::uint32_t>(jobs.back() - jobs.front() + 1), all.wakings());
}

TEST(epochs, later_jobs_are_not_waited_for) {
  jobs_in_flight all;
  const std::uint32_t before = all.begin();
  std::thread waits([&] { EXPECT_TRUE(all.wait_for_all()); });
  sleep_until(all, 1);
  const std::uint32_t after = all.begin();
  EXPECT_NE(before, after);
  all.end(before);
  waits.join();
  std::thread waits_too([&] { EXPECT_TRUE(all.wait_for_all()); });
  sleep_until(all, 2);
  all.end(after);
  waits_too.join();
}

TEST(epochs, more_threads_wait_than_there_are_epochs) {
  constexpr int threads = 100;  // more than epochs
  jobs_in_flight all;
  const std::uint32_t job = all.begin();
  std::vector<std::thread> waiting;
  std::vector<std::uint32_t> jobs;
  for (int i = 0; i < threads; ++i) {
    waiting.emplace_back([&] { EXPECT_TRUE(all.wait_for_all()); });
    sleep_until(all, i + 1);
    jobs.push_back(all.begin());
  }
  all.end(job);
  for (const std::uint32_t other : jobs) all.end(other);
  for (std::thread &thread : waiting) thread.join();
}

// The slot of an epoch is reused after 64 more.
TEST(epochs, no_wake_without_a_sleeper) {
  epochs all;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(all.watch_closed(all.present()));
    const std::uint32_t job = all.count_in();
    all.completed(job, 1);
  }
  EXPECT_EQ(0u, all.wakings());
}

TEST(epochs, a_reused_slot_wakes_once) {
  jobs_in_flight all;
  for (int i = 0; i < 200; ++i) {
    const std::uint32_t job = all.begin();
    ASSERT_EQ(job, all.begin());
    std::thread waits([&] { EXPECT_TRUE(all.wait_for_all()); });
    sleep_until(all, i + 1);
    all.end(job);
    all.end(job);
    waits.join();
    EXPECT_EQ(static_cast<std::uint32_t>(i + 1), all.wakings());
  }
}

// The thread that waits for an epoch to close need not be the one that opens the next.
TEST(epochs, an_epoch_closed_by_another_thread_is_closed) {
  epochs all;
  const std::uint32_t oldest = all.count_in();
  while (all.open_next()) all.count_in();
  const std::uint32_t full = all.present();
  EXPECT_FALSE(all.watch_closed(full));
  EXPECT_EQ(0u, all.wakings());
  all.completed(oldest, 1);
  EXPECT_EQ(1u, all.wakings());
  ASSERT_TRUE(all.open_next());  // another thread's
  all.count_in();
  EXPECT_FALSE(all.open_next());
  EXPECT_TRUE(all.watch_closed(full));
  EXPECT_FALSE(all.watch_closed(all.present()));
}

TEST(epochs, the_oldest_is_known_without_waiters) {
  epochs all;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(all.open_next());
  const std::uint32_t before = all.count_in();
  ASSERT_TRUE(all.open_next());
  const std::uint32_t after = all.count_in();
  EXPECT_FALSE(all.completed_up_to(before));
  all.completed(before, 1);
  EXPECT_TRUE(all.completed_up_to(before));
  EXPECT_FALSE(all.completed_up_to(after));

  epochs busy;
  for (int i = 0; i < 20'000; ++i) busy.completed(busy.count_in(), 1);
  EXPECT_EQ(busy.present(), busy.oldest());
}

// One thread is about to sleep while the other's completion is about to wake it.
TEST(epochs, no_wake_is_lost) {
  constexpr int most_rounds = 100'000;
  const deadline enough(5'000'000'000);  // threads that share a core take long
  jobs_in_flight all;
  std::atomic<int> round{0};
  std::atomic<std::uint32_t> job{0};
  std::thread completer([&] {
    for (int done = 0; done < most_rounds;) {
      const int now = round.load();
      if (now == done) {
        std::this_thread::yield();
        continue;
      }
      if (now < 0) return;
      for (int wait = now % 64; wait > 0; --wait) round.load();
      all.end(job.load());
      done = now;
    }
  });
  bool woken = true;
  for (int i = 1; i <= most_rounds && woken && !enough.passed(); ++i) {
    job.store(all.begin());
    round.store(i);
    woken = all.wait_for_all();
  }
  round.store(-1);
  completer.join();
  EXPECT_TRUE(woken);
}

TEST(epochs, many_threads_at_once) {
  constexpr int rounds = 20'000, submitters = 3, waiters = 3;
  jobs_in_flight all;
  const std::uint32_t first = all.begin();  // until all wait
  std::atomic<int> submitting{submitters};
  std::vector<std::thread> threads;
  for (int s = 0; s < submitters; ++s)
    threads.emplace_back([&, s] {
      std::mt19937 random(static_cast<unsigned>(s));
      std::vector<std::uint32_t> mine;
      for (int i = 0; i < rounds; ++i) {
        mine.push_back(all.begin());
        if (random() % 4 != 0) continue;  // some complete in a bunch, and in any order
        while (!mine.empty() && random() % 8 != 0) {
          std::swap(mine[random() % mine.size()], mine.back());
          all.end(mine.back());
          mine.pop_back();
        }
      }
      for (const std::uint32_t job : mine) all.end(job);
      submitting.fetch_sub(1);
    });
  for (int w = 0; w < waiters; ++w)
    threads.emplace_back([&] {
      do ASSERT_TRUE(all.wait_for_all());
      while (submitting.load() > 0);
    });
  sleep_until(all, waiters);
  all.end(first);
  for (std::thread &thread : threads) thread.join();
  EXPECT_TRUE(all.wait_for_all());
}

}  // namespace
}  // namespace sg
