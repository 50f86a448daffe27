// SPDX-License-Identifier: Apache-2.0
// The core on which a sleeping worker wakes up.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "backends/cpu/threads/free_core.hpp"

namespace sg::cpu {
namespace {

cpu_set_t mask_of(pid_t thread) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  EXPECT_EQ(0, sched_getaffinity(thread, sizeof mask, &mask));
  return mask;
}

cpu_set_t only(int core) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(core, &mask);
  return mask;
}

// Exits, with the test's free_core, when told to.
class worker {
 public:
  explicit worker(free_core &core)
      : thread_([this, &core] {
          id_ = gettid();
          while (!told_) std::this_thread::yield();
          core.leave();
          left_ = true;
          while (!over_) std::this_thread::yield();
        }) {
    while (id_ == 0) std::this_thread::yield();
  }
  ~worker() {
    told_ = over_ = true;
    thread_.join();
  }
  pid_t id() const { return id_; }
  void leave() {
    told_ = true;
    while (!left_) std::this_thread::yield();
  }

 private:
  std::atomic<pid_t> id_{0};
  std::atomic<bool> told_{false}, left_{false}, over_{false};
  std::thread thread_;
};

class a_woken_worker : public testing::Test {
 protected:
  void SetUp() override {
    if (CPU_COUNT(&all_) < 2) GTEST_SKIP() << "with one core";
    // The caller must stay on its core during the comparison.
    for (int core = 0; core < CPU_SETSIZE && here_ < 0; ++core)
      if (CPU_ISSET(core, &all_)) here_ = core;
  }
  void TearDown() override { sched_setaffinity(0, sizeof all_, &all_); }
  // To one core, once threads exist that may use all.
  void stay_here() {
    const cpu_set_t here = only(here_);
    ASSERT_EQ(0, sched_setaffinity(0, sizeof here, &here));
  }
  cpu_set_t all_but(int core) const {
    cpu_set_t rest = all_;
    CPU_CLR(core, &rest);
    return rest;
  }
  int first_of(const cpu_set_t &set) const {
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) return core;
    return awake_cores::nowhere;
  }
  // Some worker runs on each of these.
  void occupy(const cpu_set_t &cores) {
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &cores)) awake_.moves(awake_cores::nowhere, core);
  }
  static bool equal(const cpu_set_t &x, const cpu_set_t &y) { return CPU_EQUAL(&x, &y); }

  const cpu_set_t all_ = mask_of(0);
  const std::int32_t cores_ = CPU_COUNT(&all_);
  int here_ = -1;
  awake_cores awake_;
  free_core core_;
};

TEST_F(a_woken_worker, runs_on_another_core_than_its_waker) {
  worker led(core_);
  stay_here();
  const int known = core_.steer(led.id(), cores_, awake_);
  EXPECT_TRUE(equal(all_but(here_), mask_of(led.id())));
  EXPECT_EQ(cores_ == 2 ? first_of(all_but(here_)) : awake_cores::nowhere, known);
  led.leave();
  EXPECT_TRUE(equal(all_, mask_of(led.id())));
}

TEST_F(a_woken_worker, runs_on_its_wakers_core_if_workers_occupy_the_others) {
  worker led(core_);
  stay_here();
  occupy(all_but(here_));
  EXPECT_EQ(here_, core_.steer(led.id(), cores_, awake_));
  EXPECT_TRUE(equal(only(here_), mask_of(led.id())));
  led.leave();
  EXPECT_TRUE(equal(all_, mask_of(led.id())));
}

TEST_F(a_woken_worker, avoids_cores_occupied_by_workers) {
  worker led(core_);
  stay_here();
  const int taken = first_of(all_but(here_));
  awake_.moves(awake_cores::nowhere, here_);
  awake_.moves(here_, taken);
  core_.steer(led.id(), cores_, awake_);
  EXPECT_FALSE([&] {
    const cpu_set_t now = mask_of(led.id());
    return CPU_ISSET(taken, &now);
  }());
  led.leave();
}

TEST_F(a_woken_worker, runs_anywhere_if_workers_occupy_all_cores) {
  worker free(core_);
  stay_here();
  occupy(all_);
  EXPECT_EQ(awake_cores::nowhere, core_.steer(free.id(), cores_, awake_));
  EXPECT_TRUE(equal(all_, mask_of(free.id())));
  free.leave();
}

TEST_F(a_woken_worker, steered_twice_is_released_once) {
  worker led(core_);
  stay_here();
  core_.steer(led.id(), cores_, awake_);
  EXPECT_EQ(awake_cores::nowhere, core_.steer(led.id(), cores_, awake_));  // it was awake before the first call
  led.leave();
  EXPECT_TRUE(equal(all_, mask_of(led.id())));
}

TEST_F(a_woken_worker, runs_anywhere_if_there_are_fewer_workers_than_cores) {
  worker free(core_);
  stay_here();
  EXPECT_EQ(awake_cores::nowhere, core_.steer(free.id(), cores_ - 1, awake_));
  EXPECT_TRUE(equal(all_, mask_of(free.id())));
  free.leave();
  EXPECT_TRUE(equal(all_, mask_of(free.id())));
}

TEST_F(a_woken_worker, stays_within_its_mask) {
  worker pinned(core_);
  const cpu_set_t others = all_but(here_);
  ASSERT_EQ(0, sched_setaffinity(pinned.id(), sizeof others, &others));
  stay_here();
  occupy(others);
  core_.steer(pinned.id(), cores_, awake_);
  EXPECT_TRUE(equal(others, mask_of(pinned.id())));
}

TEST_F(a_woken_worker, keeps_an_affinity_mask_set_by_others) {
  worker led(core_);
  stay_here();
  core_.steer(led.id(), cores_, awake_);
  const cpu_set_t here = only(here_);
  ASSERT_EQ(0, sched_setaffinity(led.id(), sizeof here, &here));
  led.leave();
  EXPECT_TRUE(equal(here, mask_of(led.id())));
}

}  // namespace
}  // namespace sg::cpu
