// SPDX-License-Identifier: Apache-2.0
// Which devices the stages of a pipeline are on, by a time that each test says.
#include "run/pipeline/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "problems.hpp"

namespace sg::test::of_placement {
namespace {

placement of(std::initializer_list<std::size_t> numbers) {
  placement made;
  for (const std::size_t each : numbers) made.push_back(device_index(each));
  return made;
}

placement_request free_stages(std::size_t stages, std::size_t devices) {
  return {std::vector<std::optional<device_index>>(stages), first_devices(devices)};
}

// As of stages that stream `work` seconds each: the busiest device decides.
double busiest(const placement &where, const std::vector<double> &work) {
  double most = 0;
  for (const device_index each : where) {
    double own = 0;
    for (std::size_t s = 0; s < where.size(); ++s)
      if (where[s] == each) own += work[s];
    most = std::max(most, own);
  }
  return most;
}

TEST(placements, are_the_fastest_in_contiguous_groups) {
  const machine_model machine = shipped_machine("h200x4");
  const std::vector<double> work = {1, 1, 1, 1, 1, 1, 1, 5};
  std::set<placement> asked;
  const auto seconds = [&](const placement &where) {
    EXPECT_TRUE(asked.insert(where).second) << "asked twice";
    return busiest(where, work);
  };
  const placement found = best_placement(free_stages(8, 4), machine, seconds);
  EXPECT_EQ(5, busiest(found, work));
  EXPECT_EQ(of({0, 0, 0, 0, 0, 1, 1, 2}).size(), found.size());
  EXPECT_NE(found[6], found[7]) << "the last stage takes as long as the best of all";
  EXPECT_LE(std::set<device_index>(found.begin(), found.end()).size(), 3u) << "a fourth device gains nothing";
  EXPECT_EQ(64u, asked.size()) << "all that differ in more than the names of the devices";
  for (const placement &each : asked) {
    std::set<device_index> left;
    for (std::size_t s = 1; s < each.size(); ++s) {
      if (each[s] == each[s - 1]) continue;
      EXPECT_TRUE(left.insert(each[s - 1]).second);
      EXPECT_EQ(0u, left.count(each[s])) << "a group is contiguous";
    }
  }
}

TEST(placements, of_devices_that_differ_are_all_tried) {
  const machine_model machine = shipped_machine("unequal2");
  std::size_t asked = 0;
  const auto second_is_faster = [&](const placement &where) {
    ++asked;
    return 1.0 + double(std::count(where.begin(), where.end(), first_device));
  };
  EXPECT_EQ(of({1, 1, 1}), best_placement(free_stages(3, 2), machine, second_is_faster));
  EXPECT_EQ(2u + 2 * 2, asked);
}

// As GPUs that were measured are: their names differ, and their rates a little.
TEST(placements, of_devices_that_differ_by_noise_are_tried_once) {
  const machine_model machine = shipped_machine("h200x4");
  machine_model measured = machine;
  for (std::size_t i = 0; i < measured.devices.size(); ++i) {
    device_model &each = measured.devices[i];
    each.name = "cuda:" + std::to_string(i);
    each.numa_node = std::int32_t(i / 2);
    each.link_in *= 1 + 0.005 * double(i);
    for (gemm_rate &rate : each.rates) rate.flops_per_second *= 1 - 0.005 * double(i);
  }
  for (device_link &each : measured.links) each.bytes_per_second *= 1 + 0.01 * double(number_of(each.second));
  const auto tries = [](const machine_model &on, std::map<device_index, std::int64_t> limits) {
    placement_request wanted = free_stages(6, 4);
    wanted.limits = std::move(limits);
    std::size_t asked = 0;
    best_placement(wanted, on, [&](const placement &where) {
      ++asked;
      return busiest(where, {1, 1, 1, 1, 1, 1});
    });
    return asked;
  };
  EXPECT_EQ(tries(machine, {}), tries(measured, {}));
  const std::map<device_index, std::int64_t> less_on_one{
      {first_device, 1 << 20}, {device_index(1), 1 << 30}, {device_index(2), 1 << 30}, {device_index(3), 1 << 30}};
  EXPECT_GT(tries(machine, less_on_one), tries(machine, {})) << "a device with less memory is another one";
}

// Whether all can be tried or not.
TEST(placements, are_found_where_the_first_devices_have_no_room) {
  const machine_model machine = shipped_machine("h200x4");
  for (const std::size_t stages : {3, 60}) {
    placement_request wanted = free_stages(stages, 4);
    for (std::size_t i = 0; i < 4; ++i) wanted.limits[device_index(i)] = i == 3 ? 1 << 30 : std::int64_t(i) << 10;
    const auto only_the_last = [](const placement &where) {
      return std::all_of(where.begin(), where.end(), [](device_index x) { return number_of(x) == 3; }) ? 1.0 : HUGE_VAL;
    };
    EXPECT_EQ(1.0, only_the_last(best_placement(wanted, machine, only_the_last))) << stages;
  }
}

TEST(placements, keep_what_is_fixed) {
  const machine_model machine = shipped_machine("h200x4");
  placement_request wanted = free_stages(4, 4);
  wanted.fixed[1] = device_index(2);
  const auto seconds = [&](const placement &where) {
    EXPECT_EQ(device_index(2), where[1]);
    return busiest(where, {1, 1, 1, 1});
  };
  const placement found = best_placement(wanted, machine, seconds);
  EXPECT_EQ(1, busiest(found, {1, 1, 1, 1})) << "on four devices";
  EXPECT_EQ(device_index(2), found[1]);
}

TEST(placements, are_on_few_devices_where_more_gain_little_or_batches_are_short) {
  const machine_model machine = shipped_machine("h200x2");
  const auto gain = [&](double one, double two) {
    const placement found = best_placement(free_stages(2, 2), machine,
                                           [&](const placement &where) { return where[0] == where[1] ? one : two; });
    return found[0] != found[1];
  };
  EXPECT_TRUE(gain(1, 0.96));
  EXPECT_FALSE(gain(1, 0.98));
  EXPECT_FALSE(gain(0.9e-4, 0.3e-4));
  EXPECT_TRUE(gain(1.1e-4, 0.6e-4));
  EXPECT_TRUE(gain(HUGE_VAL, 1)) << "one has too little memory";
  const placement none = best_placement(free_stages(2, 2), machine, [](const placement &) { return double(HUGE_VAL); });
  EXPECT_EQ(of({0, 0}), none);
}

// Too many to try all: groups whose edges are moved.
TEST(placements, of_many_stages_are_searched) {
  const machine_model machine = shipped_machine("h200x4");
  std::vector<double> work(80, 1);
  for (std::size_t s = 0; s < 20; ++s) work[s] = 3;
  std::size_t asked = 0;
  const placement found = best_placement(free_stages(80, 4), machine, [&](const placement &where) {
    ++asked;
    return busiest(where, work);
  });
  EXPECT_LE(busiest(found, work), 45) << "a fourth of 120 is 30, equal groups take 60";
  EXPECT_LE(asked, 1000u);
}

}  // namespace
}  // namespace sg::test::of_placement
