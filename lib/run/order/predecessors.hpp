// SPDX-License-Identifier: Apache-2.0
// The order of recorded submissions, by their streams and memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "run/order/access.hpp"

namespace sg {

struct ordered_submission {
  std::span<const access> accesses;  // those that order it
  std::int64_t stream = -1;          // its number; -1: none
};

// The direct predecessors of each submission, latest first: earlier submissions that it must follow, and that no other
// of its predecessors follows.
std::vector<std::vector<std::int32_t>> predecessors_of(std::span<const ordered_submission> submissions);

}  // namespace sg
