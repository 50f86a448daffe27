// SPDX-License-Identifier: Apache-2.0
// Runs of a plan: a completed run is reused, as fresh as a new one.
#include "run/program/program_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "plan/schedule/schedule.hpp"
#include "run/program/run_pool.hpp"

namespace sg {
namespace {

// Two chunks that workers pack and that are copied in each by itself; one GEMM needs both; its result is unpacked.
std::shared_ptr<const schedule> make_schedule(std::vector<std::uint32_t> gemm_waits = {2, 3}, double seconds = 0) {
  schedule made;
  made.predicted_seconds = seconds;
  const auto add = [&](payload what, lane where, std::vector<std::uint32_t> waits) {
    command c;
    c.what = what, c.where = where;
    c.first_wait = static_cast<std::uint32_t>(made.waits.size());
    c.waits = static_cast<std::uint32_t>(waits.size());
    made.waits.insert(made.waits.end(), waits.begin(), waits.end());
    made.commands.push_back(c);
  };
  const lane workers{lane_kind::staging, 0}, in{lane_kind::copy_in, 0}, compute{lane_kind::compute, 0},
      out{lane_kind::copy_out, 0};
  add(ops::pack(), workers, {});
  add(ops::pack(), workers, {});
  add(ops::copy_in(), in, {0});
  add(ops::copy_in(), in, {1});
  add(ops::gemm(), compute, std::move(gemm_waits));
  add(ops::copy_out(), out, {4});
  add(ops::unpack(), workers, {5});
  return std::make_shared<schedule>(std::move(made));
}

class runs_of_a_plan : public testing::Test {
 protected:
  static std::shared_ptr<const program> make_plan() {
    return std::make_shared<program>(nullptr, plan_request(), make_schedule(), device_model());
  }
  const std::shared_ptr<const program> plan_ = make_plan();
  run_pool pool_;

  static void expect_fresh(const program_run &run) {
    const auto all = [](const auto &list, auto value) {
      return std::all_of(list.begin(), list.end(), [&](const auto &x) { return x == value; });
    };
    EXPECT_TRUE(all(run.states, program_run::command_state::waiting));
    for (const auto &lane : run.lanes) EXPECT_TRUE(lane.next == 0 && !lane.busy && !lane.started && !lane.held_up);
    EXPECT_EQ((std::vector<std::uint32_t>{0, 0, 0, 0, 0, 0, 1}), run.blockers);
    EXPECT_EQ((std::vector<std::uint32_t>{0, 1}), run.stageable);
    EXPECT_TRUE(all(run.slots, static_cast<lane_slot *>(nullptr)));
    EXPECT_TRUE(all(run.events, static_cast<sg_backend_event *>(nullptr)));
    EXPECT_TRUE(!run.unbatched && run.idle());
    EXPECT_EQ(0u, run.completed_count);
  }

  // A mark that identifies a run, in a field that nobody reads before the run has written it.
  static void mark(program_run &run, std::int64_t as) { run.inflight[0].predicted_ns = as; }
  static std::int64_t mark_of(const program_run &run) { return run.inflight[0].predicted_ns; }

  // The state of a run that fails with a command in each lane.
  static void leave_traces(program_run &run) {
    static lane_slot slot;
    for (const std::uint32_t command : {2u, 3u, 4u, 5u}) {
      run.mark_issued(command);
      run.slots[command] = &slot;
      run.events[command] = reinterpret_cast<sg_backend_event *>(&slot);
    }
    for (auto &lane : run.lanes) lane.started = lane.held_up = true;
    run.stageable.assign({6});
    run.blockers[6] = 0;
    run.unbatched = true;
    run.completed_count = 4;
  }
};

TEST_F(runs_of_a_plan, start_with_commands_that_wait_for_nothing) { expect_fresh(*pool_.acquire(plan_)); }

TEST_F(runs_of_a_plan, are_reused_once_completed) {
  pooled_run first = pool_.acquire(plan_);
  leave_traces(*first);
  mark(*first, 1);
  first.reset();
  const pooled_run second = pool_.acquire(plan_);
  EXPECT_EQ(1, mark_of(*second));
  expect_fresh(*second);
  const pooled_run beside = pool_.acquire(plan_);
  EXPECT_EQ(0, mark_of(*beside));
  expect_fresh(*beside);
}

TEST_F(runs_of_a_plan, are_reused_latest_first) {
  pooled_run first = pool_.acquire(plan_), second = pool_.acquire(plan_);
  mark(*first, 1);
  mark(*second, 2);
  first.reset();
  second.reset();
  EXPECT_EQ(2, mark_of(*pool_.acquire(plan_)));
}

TEST_F(runs_of_a_plan, belong_to_that_plan) {
  std::vector<std::shared_ptr<const program>> plans;
  for (int i = 0; i < 200; ++i) plans.push_back(make_plan());
  for (int round = 0; round < 2; ++round)
    for (const auto &each : plans) {
      const pooled_run run = pool_.acquire(each);
      EXPECT_EQ(each.get(), &run->of());
      expect_fresh(*run);
    }
}

// A run keeps its plan, a plan keeps no run: nothing remains when the pool is gone.
TEST_F(runs_of_a_plan, keep_their_plan_until_the_pool_is_gone) {
  std::weak_ptr<const program> watched;
  {
    run_pool pool;
    auto plan = make_plan();
    watched = plan;
    pooled_run first = pool.acquire(plan);
    const pooled_run second = pool.acquire(plan);
    EXPECT_EQ(3, plan.use_count());
    first.reset();
    EXPECT_EQ(3, plan.use_count()) << "the pooled run keeps it";
    plan.reset();
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
}

TEST(program, commands_that_follow_one_another_share_a_lane_without_events) {
  const auto program_of = [](std::shared_ptr<const schedule> made, bool unified_memory = false) {
    device_model model;
    model.unified_memory = unified_memory;
    return program(nullptr, plan_request(), std::move(made), model);
  };
  const auto events = [](const program &of) { return std::count(of.needs_event.begin(), of.needs_event.end(), true); };
  const program one = program_of(make_schedule());
  ASSERT_TRUE(one.in_one_lane);
  ASSERT_EQ(1u, one.lanes.size());
  EXPECT_EQ((std::vector<std::uint32_t>{2, 3, 4, 5}), one.lanes[0].commands);
  EXPECT_EQ(lane_kind::compute, one.lanes[0].where.kind);
  EXPECT_EQ(0, events(one));
  const program apart[] = {program_of(make_schedule({2})),           // the second copy runs beside the GEMM
                           program_of(make_schedule({2, 3}, 0.01)),  // others would miss the lane
                           program_of(make_schedule(), true)};
  for (const program &each : apart) {
    EXPECT_FALSE(each.in_one_lane);
    EXPECT_EQ(3u, each.lanes.size());
    EXPECT_LT(0, events(each));
  }
}

}  // namespace
}  // namespace sg
