// SPDX-License-Identifier: Apache-2.0
// Work on the columns or rows of a result in panels, between which the worker looks whether it is to stop.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/worker/workspace.hpp"

namespace sg::cpu {

// Calls run(first, width) for all of `count` columns or rows, each of which takes so many multiplications, until it
// fails. The more a column takes, the narrower are the panels, down to a least width: each panel packs the other
// matrix.
template <class Run>
sg_status in_panels(std::int64_t count, double multiplications, workspace &space, Run &&run) noexcept {
  constexpr double most_multiplications = 2e9;
  constexpr double least_width = 64, most_width = 256;
  const auto width = static_cast<std::int64_t>(
      std::clamp(most_multiplications / std::max(1.0, multiplications), least_width, most_width));
  for (std::int64_t first = 0; first < count; first += width) {
    if (first > 0 && space.is_stopped()) return SG_STATUS_CANCELLED;
    if (const sg_status status = run(first, std::min(width, count - first)); status != SG_STATUS_OK) return status;
  }
  return SG_STATUS_OK;
}

}  // namespace sg::cpu
