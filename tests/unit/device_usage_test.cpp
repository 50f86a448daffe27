// SPDX-License-Identifier: Apache-2.0
// Busy times by union, whatever the order of the reports.
#include "run/dispatch/device_usage.hpp"

#include <gtest/gtest.h>

namespace sg {
namespace {

std::int64_t busy_of(const device_usage &usage, lane_kind where = lane_kind::compute) {
  return usage.lanes()[static_cast<std::size_t>(where)].busy_ns;
}

TEST(usage_of_a_device, counts_overlapping_commands_once) {
  device_usage usage(false);
  usage.count(lane_kind::compute, 100, 200, 0);
  usage.count(lane_kind::compute, 150, 250, 0);
  usage.count(lane_kind::compute, 150, 180, 0);
  EXPECT_EQ(150, busy_of(usage));
  usage.count(lane_kind::copy_in, 100, 400, 1000);
  EXPECT_EQ(150, busy_of(usage));
  EXPECT_EQ(300, busy_of(usage, lane_kind::copy_in));
}

TEST(usage_of_a_device, counts_a_long_command_that_is_reported_after_short_ones) {
  device_usage usage(false);
  for (std::int64_t start = 100; start < 1000; start += 100) usage.count(lane_kind::compute, start, start + 10, 0);
  EXPECT_EQ(90, busy_of(usage));
  usage.count(lane_kind::compute, 50, 1000, 0);
  EXPECT_EQ(900, busy_of(usage)) << "from the first command on: what was before it is not remembered";
  usage.count(lane_kind::compute, 60, 990, 0);
  EXPECT_EQ(900, busy_of(usage));
}

TEST(usage_of_a_device, never_exceeds_the_time_that_has_passed) {
  device_usage usage(false);
  std::uint64_t state = 7;
  const auto random = [&](std::uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>((state >> 33) % below);
  };
  for (int i = 0; i < 10000; ++i) {
    const std::int64_t start = 1 + random(100000);
    usage.count(lane_kind::compute, start, start + random(50), 0);
    ASSERT_LE(busy_of(usage), 100050);
  }
}

TEST(usage_of_a_device, leaves_out_what_was_not_timed) {
  device_usage usage(false);
  usage.count(lane_kind::compute, 0, 500, 0);
  usage.count(lane_kind::staging, 100, 500, 0);
  EXPECT_EQ(0, busy_of(usage));
  device_usage in_virtual_time(true);
  in_virtual_time.count(lane_kind::compute, 0, 500, 0);
  EXPECT_EQ(500, busy_of(in_virtual_time));
}

}  // namespace
}  // namespace sg
