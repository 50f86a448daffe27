// SPDX-License-Identifier: Apache-2.0
#include "run/dispatch/shared_arenas.hpp"

#include <algorithm>

namespace sg {

void shared_arenas::offer(char *arena, std::int64_t bytes, lane_bits lanes) noexcept {
  if (!arena) return;
  const auto known = std::find_if(all_.begin(), all_.end(), [&](const shared_arena &x) { return x.start == arena; });
  if (known == all_.end()) {
    all_.push_back({arena, bytes, lanes, 1, true});  // within the reserved capacity: each has a run
  } else {
    known->lanes = lanes;
    known->is_offered = true;
  }
}

char *shared_arenas::take(std::int64_t bytes, lane_bits behind) noexcept {
  if (bytes == 0) return nullptr;
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const shared_arena &x) {
    return x.is_offered && x.bytes >= bytes && (x.lanes & ~behind) == 0;
  });
  if (found == all_.end()) return nullptr;
  found->is_offered = false;
  ++found->users;
  return found->start;
}

bool shared_arenas::release(const char *arena) noexcept {
  const auto known = std::find_if(all_.begin(), all_.end(), [&](const shared_arena &x) { return x.start == arena; });
  if (known == all_.end()) return false;
  if (--known->users > 0) return true;
  all_.erase(known);
  return false;
}

}  // namespace sg
