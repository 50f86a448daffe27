// SPDX-License-Identifier: Apache-2.0
// Multiprocessors that long GEMMs leave free while high-priority GEMMs arrive, when submitters need not look, and when
// commands are expected to complete.
#include "run/dispatch/lane_set.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/futex.hpp"
#include "devices/registry.hpp"

namespace sg {
namespace {

class spared_units : public testing::Test {
 protected:
  // A simulated device in real time, because urgency depends on recent real time.
  static sg_backend_ops ops_of_world_time() {
    sg_backend_ops ops = *find_backend("sim")->ops;
    ops.stream_begin_at = nullptr;
    return ops;
  }
  // Units for a GEMM after a high-priority one has arrived, which counts for a tenth of a second: retried on a machine
  // so slow that this time has passed.
  std::int32_t after_urgent(int priority, float share, std::int32_t limit, std::int32_t expected) {
    std::int32_t units = -1;
    for (int attempt = 0; attempt < 100 && units != expected; ++attempt) {
      lanes_.find(lane_demand{.priority = 1});
      units = lanes_.units_for(priority, share, limit);
    }
    return units;
  }

  const sg_backend_ops ops_ = ops_of_world_time();
  const device device_{ops_, {"sim", "h200"}};
  const std::int32_t all_ = device_.model().units, left_ = all_ - all_ / 11;
  lane_set lanes_{device_, first_device, device_.model(), 0};
};

TEST_F(spared_units, none_before_anything_urgent_comes) {
  EXPECT_EQ(0, lanes_.units_for(0, 1, 0));
  EXPECT_EQ(0, lanes_.units_for(-1, 1, 0));
}

TEST_F(spared_units, of_long_gemms_of_low_and_normal_priority) {
  ASSERT_GT(all_, left_);
  EXPECT_EQ(left_, after_urgent(0, 1, 0, left_));
  EXPECT_EQ(left_, after_urgent(-1, 1, 0, left_));
  EXPECT_EQ(0, after_urgent(1, 1, 0, 0)) << "an urgent GEMM has the whole device";
  EXPECT_EQ(0, after_urgent(0, 0.5f, 0, 0)) << "a GEMM that does not fill the device leaves some free anyway";
}

TEST_F(spared_units, beside_a_stream_s_limit) {
  EXPECT_EQ(7, after_urgent(0, 1, 7, 7));
  EXPECT_EQ(left_, after_urgent(0, 1, all_ - 1, left_));
  EXPECT_EQ(7, after_urgent(1, 1, 7, 7));
}

TEST_F(spared_units, not_in_virtual_time) {
  const device virtual_device(*find_backend("sim")->ops, {"sim", "h200"});
  lane_set lanes(virtual_device, first_device, virtual_device.model(), 0);
  lanes.find(lane_demand{.priority = 1});
  EXPECT_EQ(0, lanes.units_for(0, 1, 0));
}

TEST_F(spared_units, are_as_many_as_the_model_says) {
  device_model model = device_.model();
  model.dispatch.spared_units = 40;
  lane_set forty(device_, first_device, model, 0);
  std::int32_t units = 0;
  for (int attempt = 0; attempt < 100 && units == 0; ++attempt) {
    forty.find(lane_demand{.priority = 1});
    units = forty.units_for(0, 1, 0);
  }
  EXPECT_EQ(all_ - 40, units);
}

TEST_F(spared_units, limits_of_the_model_hold) {
  device_model model = device_.model();
  model.dispatch.large_in_flight = 1;
  model.dispatch.beside_each_other_seconds = 0;
  lane_set one_by_one(device_, first_device, model, 0);
  const lane_demand brief{.share = 1, .seconds = 50e-6};
  lane_slot *const first = one_by_one.find(brief);
  ASSERT_NE(nullptr, first);
  EXPECT_EQ(first, one_by_one.find(brief)) << "in one stream, however brief";
  one_by_one.entered(*first, 1);
  EXPECT_EQ(nullptr, one_by_one.find(brief)) << "one in flight";
  one_by_one.left(*first, 1, 0);
}

TEST(busy_with_small, on_cores_while_each_has_what_it_may_have_ahead) {
  const device cores(*find_backend("cpu")->ops, {"cpu", ""});
  device_model model = cores.model();
  model.compute_lanes = 2;
  model.lane_depth = 2;
  lane_set lanes(cores, first_device, model, 0);
  std::vector<lane_slot *> taken;
  while (lane_slot *slot = lanes.find(lane_demand{.small = true})) {
    EXPECT_FALSE(lanes.busy_with_small()) << "after " << taken.size() << " commands";
    ASSERT_LT(taken.size(), 4u);
    lanes.entered(*slot, 0);
    taken.push_back(slot);
  }
  EXPECT_EQ(4u, taken.size());
  EXPECT_TRUE(lanes.busy_with_small());
  for (lane_slot *slot : taken) {
    lanes.left(*slot, 0, 0);
    EXPECT_FALSE(lanes.busy_with_small()) << "a core has room, and only one thread may look for it";
  }
}

// Waking a thread takes longer than many a small GEMM.
TEST(small_on_cores, go_to_an_awake_worker) {
  const device cores(*find_backend("cpu")->ops, {"cpu", ""});
  device_model model = cores.model();
  model.compute_lanes = 2;
  lane_set lanes(cores, first_device, model, 0);
  const lane_demand one{.small = true};
  lane_slot *const first = lanes.find(one), *const second = lanes.find(one);
  ASSERT_NE(first, second) << "lanes are used alternately";
  for (lane_slot *slot : {second, first, second, second}) {
    lanes.awake(slot);
    EXPECT_EQ(slot, lanes.find(one));
  }
}

// GEMMs that fill the device, each by itself.
TEST_F(spared_units, the_next_one_fills_the_last_wave_of_a_brief_one) {
  const lane_demand brief{.share = 1, .seconds = 50e-6}, lasting{.share = 1, .seconds = 5e-3};
  lane_slot *const first = lanes_.find(brief);
  ASSERT_NE(nullptr, first);
  lanes_.entered(*first, 1);
  EXPECT_NE(first, lanes_.find(brief));
  EXPECT_EQ(first, lanes_.find(lasting)) << "two long ones would evict each other's cache";
  EXPECT_EQ(first, lanes_.find({})) << "a recorded graph or a copy, of unknown duration";
  lane_slot *const second = lanes_.find(brief);
  ASSERT_NE(nullptr, second);
  lanes_.entered(*second, 1);
  EXPECT_EQ(nullptr, lanes_.find(brief)) << "one runs and one is queued behind it";
  lanes_.left(*first, 1, 0);
  EXPECT_EQ(first, lanes_.find(brief));
  lanes_.left(*second, 1, 0);
}

// Expected completion times, where a caller polls: an hour each, so that no machine is too slow.
TEST(expected_completions, restart_at_each_completion) {
  sg_backend_ops ops = *find_backend("sim")->ops;
  ops.poll = [](sg_backend_device *) {};
  const device asked(ops, {"sim", "h200"});
  lane_set lanes(asked, first_device, asked.model(), 0);
  lane_slot *const slot = lanes.find({});
  ASSERT_NE(nullptr, slot);
  constexpr std::int64_t hour = 3'600'000'000'000;
  const auto hours_left = [](std::int64_t end_ns) { return double(end_ns - monotonic_ns()) / double(hour); };
  const auto enter = [&] {
    lanes.entered(*slot, 1);
    return hours_left(lanes.expect(*slot, hour));
  };
  EXPECT_NEAR(1, enter(), 0.1);
  EXPECT_NEAR(2, enter(), 0.1);
  slot->begun_ns.fetch_sub(hour / 2);
  lanes.left(*slot, 1, hour);
  EXPECT_NEAR(2, enter(), 0.1) << "the second one has just begun, whenever the first one did";
  slot->begun_ns.fetch_sub(3 * hour);
  EXPECT_NEAR(1, enter(), 0.1) << "the others are late: this one still takes its full time";
  for (int i = 0; i < 3; ++i) lanes.left(*slot, 1, hour);
  EXPECT_NEAR(1, enter(), 0.1) << "the lane is empty";
}

TEST(expected_completions, are_unknown_without_polling) {
  const device plain(*find_backend("sim")->ops, {"sim", "h200"});
  lane_set lanes(plain, first_device, plain.model(), 0);
  lane_slot *const slot = lanes.find({});
  lanes.entered(*slot, 1);
  EXPECT_EQ(0, lanes.expect(*slot, 1'000'000));
  lanes.left(*slot, 1, 0);
}

class small_on_a_device : public spared_units {
 protected:
  lane_slot *find(lane_demand wanted, float share = 0.01f) {
    wanted.small = true;
    wanted.share = share;
    lanes_.launched(true);  // just now, however slow this machine is
    lane_slot *const slot = lanes_.find(wanted);
    if (slot) lanes_.entered(*slot, 0);
    return slot;
  }
};

TEST_F(small_on_a_device, gather_while_it_is_busy) {
  ASSERT_NE(nullptr, find({})) << "an idle device takes the first at once";
  EXPECT_EQ(nullptr, find({}));
  EXPECT_NE(nullptr, find({.waiting = 1000}));
  EXPECT_NE(nullptr, find({.waiting = 1000}));
  EXPECT_EQ(nullptr, find({.waiting = 1000})) << "enough commands are in flight";
  EXPECT_NE(nullptr, find({.urgent = true})) << "a thread waits for it, so it is queued at once";
  EXPECT_EQ(nullptr, find({.urgent = true}));
}

// A schedule's run has another command for its lane whenever that has room.
TEST_F(small_on_a_device, use_another_lane_than_a_run) {
  const auto next_of_run = [&](lane_kind kind) { return lanes_.find({kind, 0}, 0, false); };
  std::vector<lane_slot *> taken;
  for (const lane_kind kind : {lane_kind::compute, lane_kind::copy_in, lane_kind::copy_out})
    while (lane_slot *const slot = next_of_run(kind)) {
      ASSERT_LT(taken.size(), 1000u);
      lanes_.entered_of_run(*slot);
      taken.push_back(slot);
    }
  EXPECT_FALSE(lanes_.busy_with_small());
  lane_slot *const first = find({});
  ASSERT_NE(nullptr, first) << "an idle device takes the first at once";
  EXPECT_TRUE(lanes_.busy_with_small());
  lanes_.entered(*first, 0);
  EXPECT_EQ(nullptr, next_of_run(lane_kind::compute));
  for (lane_slot *const slot : taken) lanes_.left_of_run(*slot);
  EXPECT_NE(nullptr, next_of_run(lane_kind::compute)) << "memory of other users does not belong to the run";
}

// In a run's lane it would come behind commands that wait for the run's GEMMs.
TEST_F(spared_units, a_copy_by_itself_is_in_no_lane_of_a_run) {
  for (const work_class what : {to_device, from_device}) {
    lane_slot *const slot = lanes_.find({.what = what});
    ASSERT_NE(nullptr, slot);
    for (const lane_kind kind : {lane_kind::copy_in, lane_kind::copy_out})
      EXPECT_NE(slot, lanes_.find({kind, 0}, 0, false));
  }
}

TEST_F(small_on_a_device, gather_until_they_fill_it_twice) {
  ASSERT_NE(nullptr, find({}));
  EXPECT_EQ(nullptr, find({.waiting = 7}, 0.25f));
  EXPECT_NE(nullptr, find({.waiting = 8}, 0.25f));
}

TEST_F(small_on_a_device, gather_until_their_work_takes_as_long_as_a_launch) {
  ASSERT_NE(nullptr, find({}));
  const auto waiting = [](std::size_t count) { return lane_demand{.waiting = count, .work_seconds = 2e-7}; };
  EXPECT_EQ(nullptr, find(waiting(28), 0.25f)) << "1.4 us, though it fills the device seven times";
  EXPECT_NE(nullptr, find(waiting(32), 0.25f));
}

TEST_F(small_on_a_device, fill_it_a_whole_number_of_times) {
  const auto all = static_cast<std::size_t>(all_);
  const float one_unit = 1 / static_cast<float>(all_);
  const auto fill = [&](std::size_t count) { return lanes_.in_whole_waves(count, one_unit); };
  EXPECT_EQ(1u, fill(1));
  EXPECT_EQ(all - 1, fill(all - 1));
  for (const std::size_t waves : {1u, 2u, 7u}) {
    EXPECT_EQ(waves * all, fill(waves * all));
    EXPECT_EQ(waves * all, fill(waves * all + 1));
    EXPECT_EQ(waves * all, fill((waves + 1) * all - 1));
  }
  EXPECT_EQ(8u, lanes_.in_whole_waves(11, 0.25f));
  EXPECT_EQ(5u, lanes_.in_whole_waves(5, 1)) << "each fills it";
}

// Which event a stream waits for behind copies.
class copy_marks_of_lanes : public testing::Test {
 protected:
  static sg_backend_ops recording_ops() {
    sg_backend_ops ops = *find_backend("sim")->ops;
    ops.stream_begin_at = nullptr;
    ops.event_record = [](sg_backend_event *event, sg_backend_stream *) {
      recorded.push_back(event);
      return SG_STATUS_OK;
    };
    ops.stream_wait = [](sg_backend_stream *, sg_backend_event *event) {
      awaited.push_back(event);
      return SG_STATUS_OK;
    };
    return ops;
  }
  void SetUp() override {
    recorded.clear();
    awaited.clear();
    ASSERT_NE(nullptr, in_);
    ASSERT_NE(in_, compute_);
    lanes_.entered(*in_, 0);
  }
  static constexpr std::int64_t large = 1 << 24, small = 4096;
  inline static std::vector<sg_backend_event *> recorded, awaited;
  const sg_backend_ops ops_ = recording_ops();
  const device device_{ops_, {"sim", "h200"}};
  lane_set lanes_{device_, first_device, device_.model(), 0};
  lane_slot *const in_ = lanes_.find(lane_demand{.what = to_device});
  lane_slot *const compute_ = lanes_.find(lane_demand{});
};

TEST_F(copy_marks_of_lanes, a_follower_does_not_wait_for_later_copies) {
  const copy_marks first = lanes_.mark_copy(*in_, large), second = lanes_.mark_copy(*in_, large);
  ASSERT_EQ(2u, recorded.size());
  ASSERT_NE(recorded[0], recorded[1]);
  lanes_.follow(*compute_, bit_of_lane(in_->index), first);
  EXPECT_EQ(std::vector{recorded[0]}, awaited);
  lanes_.follow(*compute_, bit_of_lane(in_->index), second);
  EXPECT_EQ((std::vector{recorded[0], recorded[1]}), awaited);
}

TEST_F(copy_marks_of_lanes, a_follower_of_a_small_copy_waits_for_all_that_are_present) {
  const copy_marks unmarked = lanes_.mark_copy(*in_, small);
  EXPECT_TRUE(recorded.empty());
  for (const copy_marks behind : {unmarked, copy_marks::all(), copy_marks()}) {
    awaited.clear();
    lanes_.follow(*compute_, bit_of_lane(in_->index), behind);
    EXPECT_EQ(std::vector{in_->tail}, awaited);
  }
  EXPECT_EQ(0u, lanes_.mark_copy(*compute_, large).in) << "only lanes of copies have marks";
}

TEST_F(copy_marks_of_lanes, marks_of_commands_in_flight_are_not_reused) {
  std::vector<copy_marks> all;
  for (std::size_t i = 0; i < lane_slot::most_marks; ++i) all.push_back(lanes_.mark_copy(*in_, large));
  for (std::size_t i = 0; i < all.size(); ++i) {
    awaited.clear();
    lanes_.follow(*compute_, bit_of_lane(in_->index), all[i]);
    EXPECT_EQ(std::vector{recorded[i]}, awaited);
  }
}

}  // namespace
}  // namespace sg
