// SPDX-License-Identifier: Apache-2.0
// The predecessors of recorded submissions, against every pair of them.
#include "run/order/predecessors.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace sg {
namespace {

using predecessors = std::vector<std::vector<std::int32_t>>;

bool conflict(const ordered_submission &x, const ordered_submission &y) {
  for (const access &one : x.accesses)
    for (const access &other : y.accesses)
      if ((one.writes || other.writes) && overlap(one.bytes, other.bytes)) return true;
  return false;
}

predecessors by_pairs(const std::vector<ordered_submission> &given) {
  predecessors before(given.size());
  std::vector<std::vector<bool>> after(given.size(), std::vector<bool>(given.size()));
  for (std::size_t i = 0; i < given.size(); ++i) {
    bool stream_found = given[i].stream < 0;
    for (std::size_t j = i; j-- > 0;) {
      const bool is_of_stream = !stream_found && given[j].stream == given[i].stream;
      stream_found = stream_found || is_of_stream;
      if (after[i][j] || !(is_of_stream || conflict(given[i], given[j]))) continue;
      before[i].push_back(static_cast<std::int32_t>(j));
      after[i][j] = true;
      for (std::size_t k = 0; k < j; ++k) after[i][k] = after[i][k] || after[j][k];
    }
  }
  return before;
}

TEST(predecessors, are_those_of_every_pair) {
  const unsigned seed = std::random_device{}();
  std::mt19937 draw(seed);
  const auto below = [&](std::uint32_t most) { return draw() % most; };
  std::size_t found = 0;
  for (int round = 0; round < 300; ++round) {
    const std::size_t count = below(150);
    const std::uint32_t memory = 64 << below(7);
    std::vector<std::vector<access>> accesses(count);
    std::vector<ordered_submission> given;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::uint32_t a = below(below(8) ? 5 : 40); a-- > 0;) {  // of many only the bounds make candidates
        const std::int64_t run = 1 + below(8), gap = below(3) ? 0 : below(9);
        access made;
        made.bytes =
            footprint::rectangle(reinterpret_cast<const char *>(4096) + below(memory), run, 1 + below(6), run + gap);
        made.writes = below(3) == 0;
        accesses[i].push_back(made);
      }
      given.push_back({accesses[i], static_cast<std::int64_t>(below(8)) - 5});
    }
    const predecessors expected = by_pairs(given);
    ASSERT_EQ(expected, predecessors_of(given)) << "round " << round << " of seed " << seed;
    for (const auto &each : expected) found += each.size();
  }
  EXPECT_GT(found, 1000U);
}

TEST(predecessors, are_none_of_nothing_and_one_of_a_chain) {
  EXPECT_TRUE(predecessors_of({}).empty());
  access whole;
  whole.bytes = footprint::rectangle(reinterpret_cast<const char *>(4096), 64, 1, 64);
  whole.writes = true;
  const std::vector<ordered_submission> chain(1000, {std::span(&whole, 1), -1});
  const predecessors found = predecessors_of(chain);
  for (std::size_t i = 1; i < chain.size(); ++i)
    ASSERT_EQ(std::vector<std::int32_t>{static_cast<std::int32_t>(i) - 1}, found[i]);
}

}  // namespace
}  // namespace sg
