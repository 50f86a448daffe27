// SPDX-License-Identifier: Apache-2.0
#include "run/compiled_plan.hpp"

#include <algorithm>

namespace sg {

namespace {
// A command of this length gains nothing from being queued behind another while a lane is about to become free.
constexpr double long_command_seconds = 100e-6;
}  // namespace

compiled_plan::compiled_plan(std::shared_ptr<const schedule> made)
    : text(std::move(made)), needs_event(text->commands.size(), false) {
  const auto &commands = text->commands;
  for (std::uint32_t i = 0; i < commands.size(); ++i) {
    const command &c = commands[i];
    auto list = std::find_if(lanes.begin(), lanes.end(), [&](const lane_list &l) { return l.where == c.where; });
    if (list == lanes.end()) list = lanes.insert(lanes.end(), lane_list{c.where, {}});
    list->commands.push_back(i);
    for (std::uint32_t w = 0; w < c.waits; ++w) {
      const std::uint32_t before = text->waits[c.first_wait + w];
      if (on_device(c.kind) && on_device(commands[before].kind) && !(commands[before].where == c.where))
        needs_event[before] = true;
    }
  }
  const double lane_seconds = text->predicted_seconds * static_cast<double>(lanes.size());
  wants_core = lane_seconds > long_command_seconds * static_cast<double>(commands.size());
}

}  // namespace sg
