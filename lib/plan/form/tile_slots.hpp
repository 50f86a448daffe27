// SPDX-License-Identifier: Apache-2.0
// Which tile is in which slot of the device's memory, and when: tiles come before the step that needs them, and leave
// for others that are needed sooner; results leave when they are complete.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/form/tiled_steps.hpp"

namespace sg {

struct slot_event {
  enum class kind : std::uint8_t { load, take, compute, store };  // take: a slot for a tile that is written first
  kind what;
  std::int32_t slot = -1;
  std::uint32_t step = 0;  // compute: which
  tile_index tile;         // others: which
};

struct slot_plan {
  std::vector<slot_event> events;
  std::int64_t slots = 0;  // used
};

// `is_moved`: by parameter, whether its tiles need slots. Empty if `slots` are too few.
std::optional<slot_plan> assign_slots(const tiling &t, const std::array<bool, tiling::most_operands> &is_moved,
                                      std::int64_t slots);

}  // namespace sg
