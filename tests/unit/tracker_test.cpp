// SPDX-License-Identifier: Apache-2.0
// The tracker against a plain list of everything in flight: each job runs after the jobs it conflicts with, however
// many and of whatever size, and after no others.
#include "run/order/tracker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

#include "run/context.hpp"

namespace sg {
namespace {

struct traits {
  const char *name;
  std::size_t most_in_flight;
  int all_end_every;     // steps; 0: never
  bool epochs_complete;  // the tracker is given the oldest epoch in flight
  std::uint64_t area;    // bytes that contain all operands
  int most_size_bits;    // of an operand
};

// Jobs without work: a job completes once it is released and all its predecessors have completed.
class tracking : public testing::TestWithParam<traits> {
 protected:
  struct known {
    ref<job> work;
    std::vector<access> touched;
    std::vector<std::size_t> must, may;  // in flight when it came: share a byte with it; may share one
    bool released = false, completed = false;
  };

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  footprint some_bytes() {
    const auto length = static_cast<std::int64_t>(below(std::uint64_t{1} << below(GetParam().most_size_bits + 1))) + 1;
    const auto start = reinterpret_cast<const void *>(0x100000 + below(GetParam().area));
    if (below(3)) return footprint::rectangle(start, length, 1, length);
    const std::int64_t pitch = below(2) ? 4096 : 1 + length + static_cast<std::int64_t>(below(64));
    return footprint::rectangle(start, std::min(length, pitch), 1 + static_cast<std::int64_t>(below(8)), pitch);
  }

  std::vector<access> some_accesses() {
    std::vector<access> made;
    for (std::uint64_t left = below(3); left > 0; --left) made.push_back({some_bytes(), false});
    if (made.empty() || below(4)) made.push_back({some_bytes(), true, below(2) == 0, below(8) != 0});
    return made;
  }

  template <class Meet>
  static bool conflict(const known &one, const known &other, Meet &&meet) {
    return std::any_of(one.touched.begin(), one.touched.end(), [&](const access &x) {
      return std::any_of(other.touched.begin(), other.touched.end(),
                         [&](const access &y) { return (x.writes || y.writes) && meet(x.bytes, y.bytes); });
    });
  }

  static bool share_a_byte(const footprint &one, const footprint &other) {
    const std::int64_t runs = one.runs(), others = other.runs();
    for (std::int64_t i = 0; i < runs; ++i)
      for (std::int64_t j = 0; j < others; ++j) {
        const std::uintptr_t x = one.lo + static_cast<std::uintptr_t>(i * one.pitch);
        const std::uintptr_t y = other.lo + static_cast<std::uintptr_t>(j * other.pitch);
        if (x < y + static_cast<std::uintptr_t>(other.run) && y < x + static_cast<std::uintptr_t>(one.run)) return true;
      }
    return false;
  }

  void add() {
    known next{.work = home_->new_job(), .touched = some_accesses()};
    for (const std::size_t i : in_flight_) {
      if (conflict(all_[i], next, share_a_byte)) next.must.push_back(i);
      if (conflict(all_[i], next, overlap)) next.may.push_back(i);
    }
    next.work->epoch = static_cast<std::uint32_t>(all_.size() / 16);
    const auto oldest = static_cast<std::uint32_t>((in_flight_.empty() ? all_.size() : in_flight_.front()) / 16);
    tracker_.add(*next.work, next.touched.data(), next.touched.size(), GetParam().epochs_complete ? oldest : 0,
                 unobserved_);
    in_flight_.push_back(all_.size());
    all_.push_back(std::move(next));
  }

  void release(std::size_t which) {
    all_[which].released = true;
    all_[which].work->add_ref();  // the engine's
    all_[which].work->submit();
  }

  void release_one() {
    std::vector<std::size_t> held;
    for (const std::size_t i : in_flight_)
      if (!all_[i].released) held.push_back(i);
    if (!held.empty()) release(held[below(held.size())]);
  }

  // The expected jobs have completed, and none of the later ones.
  void settle() {
    const auto have_completed = [&](const std::vector<std::size_t> &jobs) {
      return std::all_of(jobs.begin(), jobs.end(),
                         [&](std::size_t one) { return all_[one].completed || all_[one].work->done(); });
    };
    for (const std::size_t i : in_flight_) {
      known &one = all_[i];
      if (one.released && have_completed(one.may)) {
        ASSERT_TRUE(one.work->wait(deadline(60'000'000'000)))
            << "job " << i << " waits for a job that it does not conflict with";
      }
      one.completed = one.work->done();
      ASSERT_TRUE(!one.completed || (one.released && have_completed(one.must))) << "job " << i << " overtook another";
    }
    std::erase_if(in_flight_, [&](std::size_t i) {
      if (all_[i].completed) all_[i].work = {};  // the record may be reused from now on
      return all_[i].completed;
    });
  }

  void let_all_go() {
    for (const std::size_t i : in_flight_)
      if (!all_[i].released) release(i);
    settle();
  }

  const ref<context> home_ = context::create({.device = "sim:h200"});
  tracker tracker_;
  unobserved_failures unobserved_;
  std::mt19937_64 random_{20};
  std::vector<known> all_;
  std::vector<std::size_t> in_flight_;  // the oldest first
};

TEST_P(tracking, orders_exactly_the_conflicting_jobs) {
  constexpr int steps = 40'000;
  bool growing = true;
  for (int step = 1; step <= steps && !HasFatalFailure(); ++step) {
    const std::size_t most = GetParam().most_in_flight;
    growing = in_flight_.size() < (growing ? most : most / 8 + 1);
    if (below(8) < (growing ? 6 : 2)) {
      add();
    } else {
      release_one();
    }
    settle();
    if (GetParam().all_end_every && step % GetParam().all_end_every == 0) let_all_go();
  }
  let_all_go();
  EXPECT_TRUE(in_flight_.empty());
  EXPECT_GT(all_.size(), 8000u);
}

constexpr traits all_traits[] = {
    {"few_in_little_memory", 12, 0, true, 1 << 12, 10},     {"many_in_much_memory", 300, 0, true, 1 << 22, 16},
    {"many_without_epochs", 300, 0, false, 1 << 22, 16},    {"of_all_sizes", 100, 0, true, 1 << 26, 26},
    {"that_all_end_at_times", 100, 300, true, 1 << 18, 14},
};

INSTANTIATE_TEST_SUITE_P(memory, tracking, testing::ValuesIn(all_traits),
                         [](const auto &info) { return std::string(info.param.name); });

// Lane bits of one device say nothing about another device's lanes.
TEST(job_order, follows_jobs_of_its_own_device_only) {
  const ref<context> home = context::create({.device = "sim:h200"});
  for (const bool is_same : {true, false}) {
    const ref<job> before = home->new_job(), after = home->new_job();
    after->follows_on_device = true;
    before->device = is_same ? first_device : device_index{1};
    after->order_after(*before, before->incarnation(), false);
    before->issued(lane_bits{2}, {});
    EXPECT_EQ(is_same ? lane_bits{2} : lane_bits{0}, after->behind());
    before->device = first_device;  // which runs it
    for (const ref<job> &each : {after, before}) {
      each->add_ref();  // the engine's
      each->submit();
    }
    EXPECT_TRUE(after->wait(deadline(60'000'000'000)));
  }
}

}  // namespace
}  // namespace sg
