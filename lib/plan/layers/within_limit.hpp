// SPDX-License-Identifier: Apache-2.0
// The largest workspace of a layer whose schedule fits a memory limit.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/error.hpp"
#include "plan/schedule/schedule.hpp"

namespace sg {

// `build(workspace)` makes a schedule, or throws SG_STATUS_OUT_OF_MEMORY if the workspace is too small. Tries
// `workspace` bytes and less, until the device memory is within the limit; if `may_grow`, also all of the limit. Throws
// SG_STATUS_OUT_OF_MEMORY. `what`: the layer's name in the message.
template <class Build>
schedule schedule_within(std::int64_t memory_limit, std::int64_t workspace, bool may_grow, const char *what,
                         Build &&build) {
  const auto is_out_of_memory = [](const error &e) { return e.status() == SG_STATUS_OUT_OF_MEMORY; };
  std::int64_t least = 0;
  for (std::int64_t tried = std::min(workspace, memory_limit); tried > 0; tried /= 4) {
    try {
      schedule made = build(tried);
      if (made.device_bytes <= memory_limit) return made;
      least = least == 0 ? made.device_bytes : std::min(least, made.device_bytes);
    } catch (const error &e) {
      if (!is_out_of_memory(e)) throw;
      if (least > 0) break;
      if (!may_grow || tried == memory_limit) throw;
      may_grow = false;
      schedule made = build(memory_limit);
      if (made.device_bytes <= memory_limit) return made;
      least = made.device_bytes;
      break;
    }
  }
  throw error(SG_STATUS_OUT_OF_MEMORY, "%s needs %lld bytes of device memory; the limit is %lld", what,
              static_cast<long long>(least), static_cast<long long>(memory_limit));
}

}  // namespace sg
