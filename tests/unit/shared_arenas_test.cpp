// SPDX-License-Identifier: Apache-2.0
// Device memory that runs which follow each other on the device share.
#include "run/dispatch/shared_arenas.hpp"

#include <gtest/gtest.h>

namespace sg::test {
namespace {

char memory[2][64];

TEST(shared_arenas, go_to_runs_behind_all_lanes_of_the_last_user) {
  shared_arenas all(4);
  EXPECT_EQ(nullptr, all.take(1, ~lane_bits{0}));
  all.offer(memory[0], 64, 0b011);
  EXPECT_EQ(nullptr, all.take(1, 0b001)) << "lane 1 may still use it";
  EXPECT_EQ(nullptr, all.take(65, 0b011)) << "it is too small";
  EXPECT_EQ(nullptr, all.take(0, 0b011)) << "none is wanted";
  EXPECT_EQ(memory[0], all.take(64, 0b111));
  EXPECT_EQ(nullptr, all.take(64, 0b111)) << "its second user is not enqueued yet";
  all.offer(memory[0], 64, 0b100);
  EXPECT_EQ(nullptr, all.take(64, 0b011)) << "the second user is in lane 2";
  EXPECT_EQ(memory[0], all.take(64, 0b100));
}

TEST(shared_arenas, are_free_once_the_last_run_has_completed) {
  shared_arenas all(4);
  EXPECT_FALSE(all.release(memory[1])) << "never shared";
  EXPECT_FALSE(all.release(nullptr)) << "a run without memory";
  all.offer(nullptr, 0, 1);
  EXPECT_EQ(nullptr, all.take(1, 1));
  all.offer(memory[0], 64, 1);
  ASSERT_EQ(memory[0], all.take(64, 1));
  EXPECT_TRUE(all.release(memory[0])) << "the second run has it";
  EXPECT_FALSE(all.release(memory[0])) << "a run that was never enqueued as a whole";
  EXPECT_EQ(nullptr, all.take(64, 1));
}

}  // namespace
}  // namespace sg::test
