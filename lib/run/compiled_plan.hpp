// SPDX-License-Identifier: Apache-2.0
// A schedule with what running it needs to know beyond its text, worked out once.
#pragma once

#include <memory>
#include <vector>

#include "plan/schedule.hpp"

namespace sg {

struct compiled_plan {
  explicit compiled_plan(std::shared_ptr<const schedule> made);

  bool is_single() const noexcept { return text->commands.size() == 1; }

  // The commands of one lane, in order.
  struct lane_list {
    lane where;
    std::vector<std::uint32_t> commands;
  };

  std::shared_ptr<const schedule> text;
  std::vector<lane_list> lanes;
  // A device command that a device command of another lane waits for: it needs an event.
  std::vector<bool> needs_event;
  bool wants_core = false;  // its commands are long enough to have a lane to themselves
};

constexpr bool on_device(command_kind kind) noexcept {
  return kind != command_kind::pack && kind != command_kind::unpack;
}

}  // namespace sg
