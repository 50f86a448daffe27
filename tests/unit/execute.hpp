// SPDX-License-Identifier: Apache-2.0
// The properties of every schedule: free of hazards, within its memory, right in any allowed order.
#pragma once

#include <gtest/gtest.h>

#include "interpreter.hpp"
#include "plan/schedule/hazard.hpp"
#include "problems.hpp"

namespace sg::test {

inline ::testing::AssertionResult is_right(const schedule &s, const std::vector<problem> &problems,
                                           std::uint32_t seed = 1) {
  const auto hazards = check_hazards(s);
  if (!hazards.empty()) return ::testing::AssertionFailure() << s.strategy << ": " << hazards.front().text;
  std::vector<bound_problem> before;
  for (const problem &p : problems) before.push_back(bind(p, seed + std::uint32_t(before.size())));
  std::vector<bound_problem> after = before;
  try {
    run(s, after, seed);
  } catch (const std::exception &e) {
    return ::testing::AssertionFailure() << s.strategy << ": " << e.what();
  }
  for (std::size_t g = 0; g < problems.size(); ++g) {
    const std::string wrong = difference(before[g], after[g]);
    if (!wrong.empty()) return ::testing::AssertionFailure() << s.strategy << ": problem " << g << ": " << wrong;
  }
  return ::testing::AssertionSuccess();
}

inline ::testing::AssertionResult is_right(const schedule &s, const problem &p, std::uint32_t seed = 1) {
  return is_right(s, std::vector<problem>{p}, seed);
}

}  // namespace sg::test
