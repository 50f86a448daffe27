// SPDX-License-Identifier: Apache-2.0
// A lookup result is valid until that memory is removed, whatever is allocated at its address later.
#include "run/memory/memory_map.hpp"

#include <gtest/gtest.h>

namespace sg {
namespace {

class memory_maps : public testing::Test {
 protected:
  const memory_map::memo *find(std::uint64_t first, std::uint64_t bytes) const {
    return map_.find(room_ + first, bytes);
  }
  bool holds(const memory_map::memo &found, std::uint64_t first, std::uint64_t bytes) const {
    return map_.holds(found, room_ + first, bytes);
  }

  char room_[64] = {};
  memory_map map_;
};

TEST_F(memory_maps, finds_a_range_in_one_allocation) {
  map_.add(room_ + 8, 16, SG_MEMORY_DEVICE);
  map_.add(room_ + 24, 8, SG_MEMORY_PINNED);
  for (int again = 0; again < 2; ++again) {  // looked up, and cached
    ASSERT_TRUE(find(8, 16));
    EXPECT_EQ(SG_MEMORY_DEVICE, find(8, 16)->space());
    ASSERT_TRUE(find(31, 1));
    EXPECT_EQ(SG_MEMORY_PINNED, find(31, 1)->space());
    EXPECT_FALSE(find(7, 1));
    EXPECT_FALSE(find(7, 4));
    EXPECT_FALSE(find(8, 17)) << "a part of it is in the next piece";
    EXPECT_FALSE(find(32, 1));
    EXPECT_FALSE(find(31, UINT64_MAX)) << "around the end of memory";
  }
}

TEST_F(memory_maps, a_memo_holds_only_for_its_bytes) {
  const memory_map::memo nothing;
  EXPECT_FALSE(holds(nothing, 8, 1));
  map_.add(room_ + 8, 16, SG_MEMORY_DEVICE);
  const memory_map::memo found = *find(10, 2);
  EXPECT_TRUE(holds(found, 8, 16));
  EXPECT_TRUE(holds(found, 23, 1));
  EXPECT_FALSE(holds(found, 7, 2));
  EXPECT_FALSE(holds(found, 23, 2));
  EXPECT_FALSE(holds(found, 24, 0));
}

TEST_F(memory_maps, a_removal_invalidates_memos) {
  map_.add(room_, 32, SG_MEMORY_DEVICE);
  map_.add(room_ + 32, 8, SG_MEMORY_DEVICE);
  const memory_map::memo gone = *find(0, 32), lasting = *find(32, 8);
  map_.remove(room_);
  EXPECT_FALSE(holds(gone, 0, 32));
  EXPECT_FALSE(holds(lasting, 32, 8)) << "the allocation is retried";
  EXPECT_FALSE(find(0, 32));
  EXPECT_TRUE(find(32, 8));
  map_.add(room_, 4, SG_MEMORY_PINNED);
  EXPECT_FALSE(holds(gone, 0, 4));
  EXPECT_FALSE(find(0, 32));
  ASSERT_TRUE(find(0, 4));
  EXPECT_EQ(SG_MEMORY_PINNED, find(0, 4)->space());
}

TEST_F(memory_maps, knows_which_device_has_the_memory) {
  map_.add(room_, 32, memory_space::of_device(device_index{3}));
  EXPECT_EQ(memory_space::of_device(device_index{3}), find(4, 8)->space());
}

TEST_F(memory_maps, a_memo_is_of_one_map) {
  map_.add(room_, 32, SG_MEMORY_DEVICE);
  const memory_map::memo found = *find(0, 32);
  const memory_map other;
  EXPECT_FALSE(other.holds(found, room_, 32));
  EXPECT_FALSE(other.find(room_, 32));
}

}  // namespace
}  // namespace sg
