// SPDX-License-Identifier: Apache-2.0
// Conflicts among many operands: the same as comparing each pair finds, but fast.
#include "api/operands/conflict.hpp"

#include <gtest/gtest.h>

#include <ctime>
#include <random>

namespace sg::test {
namespace {

bool any_pair_conflicts(const std::vector<owned_bytes> &all) {
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (all[i].owner != all[j].owner && (all[i].writes || all[j].writes) && overlap(all[i].bytes, all[j].bytes))
        return true;
  return false;
}

owned_bytes at(std::uintptr_t lo, std::int64_t run, std::int64_t runs, std::int64_t pitch, std::size_t owner,
               bool writes) {
  return {footprint::rectangle(reinterpret_cast<const void *>(lo), run, runs, pitch), owner, writes};
}

TEST(conflict, agrees_with_comparing_each_pair) {
  std::mt19937 random(1);
  const auto below = [&](unsigned n) { return random() % n; };
  int found = 0, rounds = 20000;
  for (int round = 0; round < rounds; ++round) {
    std::vector<owned_bytes> all;
    const unsigned room = 40 + below(4000);
    for (unsigned count = 2 + below(10); count > 0; --count) {
      const std::int64_t pitch = below(2) ? 16 : 1 + below(40);
      all.push_back(at(1000 + below(room), 1 + below(unsigned(pitch)), 1 + below(6), pitch, below(4), below(3) == 0));
      if (below(4) == 0) all.push_back({all.back().bytes, below(4), false});  // the same, read by another
    }
    const auto conflict = find_conflict(all);
    ASSERT_EQ(conflict.has_value(), any_pair_conflicts(all)) << round;
    if (!conflict) continue;
    ++found;
    EXPECT_TRUE(overlap(conflict->first.bytes, conflict->second.bytes));
    EXPECT_TRUE(conflict->first.writes || conflict->second.writes);
    EXPECT_NE(conflict->first.owner, conflict->second.owner);
  }
  EXPECT_GT(found, rounds / 10);
  EXPECT_LT(found, rounds * 9 / 10);
}

// Operands as programs lay them out: arrays of A, of B and of C, or GEMM by GEMM; in either, one C is a byte too long,
// or another GEMM reads it.
TEST(conflict, is_found_in_rising_runs) {
  constexpr std::size_t gemms = 200;
  for (const bool by_operand : {true, false}) {
    for (std::size_t wrong = 0; wrong < 2 * gemms; ++wrong) {
      std::vector<owned_bytes> all;
      const auto place = [&](std::size_t gemm, std::size_t which) {
        return 4096 + 64 * (by_operand ? which * gemms + gemm : gemm * 3 + which);
      };
      for (std::size_t which = 0; which < 3; ++which)
        for (std::size_t i = 0; i < gemms; ++i) all.push_back(at(place(i, which), 64, 1, 64, i, which == 2));
      ASSERT_FALSE(find_conflict(all).has_value());
      const std::size_t gemm = wrong / 2;
      if (wrong % 2 == 0)  // the last C has nothing behind it, the others the next C or the next A
        all[2 * gemms + gemm] = at(place(gemm, 2), 65, 1, 65, gemm, true);
      else
        all[(gemm + 1) % gemms].bytes = all[2 * gemms + gemm].bytes;
      const bool last = wrong % 2 == 0 && gemm == gemms - 1;
      EXPECT_EQ(find_conflict(all).has_value(), !last) << by_operand << ' ' << wrong;
    }
  }
}

// GEMMs with one shared B, and tiles of one matrix.
TEST(conflict, many_are_compared_in_little_time) {
  constexpr std::size_t gemms = 100000;
  std::vector<owned_bytes> all;
  for (std::size_t i = 0; i < gemms; ++i) {
    all.push_back(at(1 << 20, 4096, 1, 4096, i, false));
    all.push_back(at((1 << 24) + i * 4096, 4096, 1, 4096, i, false));
    all.push_back(at((std::uintptr_t(1) << 40) + (i % 64) * 256 + i / 64 * 64 * 256 * 32, 256, 32, 64 * 256, i, true));
  }
  const std::clock_t start = std::clock();  // of this process: others may load the machine
  EXPECT_FALSE(find_conflict(all).has_value());
  all.push_back(at((1 << 20) + 4095, 1, 1, 1, 7, true));
  EXPECT_TRUE(find_conflict(all).has_value());
  EXPECT_LT(std::clock() - start, 5 * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace sg::test
