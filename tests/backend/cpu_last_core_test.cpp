// SPDX-License-Identifier: Apache-2.0
// The core on which the last sleeping worker wakes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "backends/cpu/last_core.hpp"

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

// Leaves, with the test's last_core, when it is told to.
class worker {
 public:
  explicit worker(last_core &core)
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

class last_core_of : public testing::Test {
 protected:
  void SetUp() override {
    if (CPU_COUNT(&all_) < 2) GTEST_SKIP() << "with one core";
    // The caller's core must not change while it is compared.
    for (int core = 0; core < CPU_SETSIZE && here_ < 0; ++core)
      if (CPU_ISSET(core, &all_)) here_ = core;
  }
  void TearDown() override { sched_setaffinity(0, sizeof all_, &all_); }
  // To one core, once there are threads that may use all.
  void stay_here() {
    const cpu_set_t here = only(here_);
    ASSERT_EQ(0, sched_setaffinity(0, sizeof here, &here));
  }
  static bool equal(const cpu_set_t &x, const cpu_set_t &y) { return CPU_EQUAL(&x, &y); }

  const cpu_set_t all_ = mask_of(0);
  const std::int32_t cores_ = CPU_COUNT(&all_);
  int here_ = -1;
  last_core core_;
};

TEST_F(last_core_of, as_many_workers_as_cores_is_the_callers_until_it_is_awake) {
  worker led(core_);
  stay_here();
  core_.lead_here(led.id(), cores_);
  EXPECT_TRUE(equal(only(here_), mask_of(led.id())));
  led.leave();
  EXPECT_TRUE(equal(all_, mask_of(led.id())));
}

TEST_F(last_core_of, a_worker_that_was_led_twice_is_forgotten_once) {
  worker led(core_);
  stay_here();
  core_.lead_here(led.id(), cores_);
  core_.lead_here(led.id(), cores_);  // it was awake before the first
  led.leave();
  EXPECT_TRUE(equal(all_, mask_of(led.id())));
}

TEST_F(last_core_of, fewer_workers_than_cores_is_any) {
  worker free(core_);
  stay_here();
  core_.lead_here(free.id(), cores_ - 1);
  EXPECT_TRUE(equal(all_, mask_of(free.id())));
  free.leave();
  EXPECT_TRUE(equal(all_, mask_of(free.id())));
}

TEST_F(last_core_of, workers_that_may_not_use_the_callers_is_any_of_theirs) {
  worker apart(core_);
  cpu_set_t others = all_;
  CPU_CLR(here_, &others);
  ASSERT_EQ(0, sched_setaffinity(apart.id(), sizeof others, &others));
  stay_here();
  core_.lead_here(apart.id(), cores_);
  EXPECT_TRUE(equal(others, mask_of(apart.id())));
}

TEST_F(last_core_of, a_worker_whose_mask_somebody_sets_is_what_they_say) {
  worker led(core_);
  stay_here();
  core_.lead_here(led.id(), cores_);
  cpu_set_t others = all_;
  CPU_CLR(here_, &others);
  ASSERT_EQ(0, sched_setaffinity(led.id(), sizeof others, &others));
  led.leave();
  EXPECT_TRUE(equal(others, mask_of(led.id())));
}

}  // namespace
}  // namespace sg::cpu
