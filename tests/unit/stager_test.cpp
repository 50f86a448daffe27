// SPDX-License-Identifier: Apache-2.0
// The order in which host workers take commands of several jobs.
#include "run/dispatch/stager.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "run/job/job.hpp"

namespace sg {
namespace {

// One worker, who stops in its first command until the test continues it.
class one_worker {
 public:
  ~one_worker() { finish(); }

  inflight_command *command(job &of, std::uint32_t index, inflight_command *next = nullptr) {
    inflight_command &f = inflight_.emplace_back();
    f.begin(nullptr, of, index, nullptr, 1);
    f.next = next;
    return &f;
  }
  void add(inflight_command *list) {
    stager_.add(list);
    std::unique_lock lock(lock_);
    changed_.wait(lock, [&] { return begun_ > 0; });
  }
  // The index of the command that a thread that waits for the job takes; UINT32_MAX: none.
  std::uint32_t take(const job &of) {
    const inflight_command *const taken = stager_.take(of);
    if (taken) ++taken_elsewhere_;
    return taken ? taken->index : UINT32_MAX;
  }
  // The commands in the order in which the worker took them: the job's priority and the index.
  std::string finish() {
    std::unique_lock lock(lock_);
    held_ = false;
    changed_.notify_all();
    changed_.wait(lock, [&] { return taken_.size() + taken_elsewhere_ == inflight_.size(); });
    std::string all;
    for (const inflight_command *f : taken_)
      all += std::to_string(int(f->owner->priority)) + ":" + std::to_string(f->index) + " ";
    return all;
  }

 private:
  void move(inflight_command &f) {
    std::unique_lock lock(lock_);
    ++begun_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !held_; });
    taken_.push_back(&f);
    changed_.notify_all();
  }

  std::mutex lock_;
  std::condition_variable changed_;
  bool held_ = true;
  int begun_ = 0;
  std::size_t taken_elsewhere_ = 0;
  std::vector<const inflight_command *> taken_;
  std::deque<inflight_command> inflight_;
  stager stager_{1, 0, [this](inflight_command &f) { move(f); }};
};

TEST(stager, takes_a_job_s_commands_in_the_order_of_its_schedule) {
  job only;
  one_worker workers;
  workers.add(workers.command(only, 0));
  workers.add(workers.command(only, 7, workers.command(only, 3, workers.command(only, 5))));
  workers.add(workers.command(only, 4));
  EXPECT_EQ("0:0 0:3 0:4 0:5 0:7 ", workers.finish());
}

TEST(stager, takes_jobs_of_higher_priority_first_and_others_as_they_came) {
  job low, first, second, high;
  low.priority = -1;
  high.priority = 1;
  one_worker workers;
  workers.add(workers.command(first, 0));
  workers.add(workers.command(low, 1, workers.command(low, 2)));
  workers.add(workers.command(first, 30));
  workers.add(workers.command(second, 20));
  workers.add(workers.command(high, 9));
  workers.add(workers.command(first, 31));
  EXPECT_EQ("0:0 1:9 0:30 0:20 0:31 -1:1 -1:2 ", workers.finish());
}

TEST(stager, a_thread_that_waits_for_a_job_takes_its_commands_only) {
  job first, second;
  one_worker workers;
  workers.add(workers.command(first, 0));  // the worker is in it
  workers.add(workers.command(first, 1));
  workers.add(workers.command(second, 2));
  workers.add(workers.command(first, 3));
  EXPECT_EQ(1u, workers.take(first));
  EXPECT_EQ(3u, workers.take(first));
  EXPECT_EQ(UINT32_MAX, workers.take(first));
  EXPECT_EQ("0:0 0:2 ", workers.finish());
  EXPECT_EQ(UINT32_MAX, workers.take(second));
}

// Between two commands the workers are about to poll, poll, are about to sleep, or sleep.
TEST(stager, workers_that_poll_miss_no_command) {
  constexpr std::uint32_t rounds = 300;
  job only;
  std::atomic<std::uint32_t> moved{0};
  std::deque<inflight_command> commands;
  stager workers(3, 2, [&](inflight_command &) { moved.fetch_add(1); });
  const auto command = [&](inflight_command *next) {
    inflight_command &f = commands.emplace_back();
    f.begin(nullptr, only, static_cast<std::uint32_t>(commands.size()), nullptr, 1);
    f.next = next;
    return &f;
  };
  for (std::uint32_t i = 0; i < rounds; ++i) {
    workers.add(i % 3 == 0 ? command(command(nullptr)) : command(nullptr));
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (moved.load() < commands.size()) ASSERT_LT(std::chrono::steady_clock::now(), give_up) << "round " << i;
    std::this_thread::sleep_for(std::chrono::microseconds(i % 2 == 0 ? i : 0));
  }
}

}  // namespace
}  // namespace sg
