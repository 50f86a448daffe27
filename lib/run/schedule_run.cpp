// SPDX-License-Identifier: Apache-2.0
#include "run/schedule_run.hpp"

#include <algorithm>

namespace sg {

schedule_run::schedule_run(const compiled_plan &plan)
    : steps(plan.text->commands.size(), step::waiting),
      lanes(plan.lanes.size()),
      lane_of(steps.size(), UINT32_MAX),
      blockers(steps.size(), 0),
      flights(std::make_unique<flight[]>(steps.size())),
      slots(steps.size(), nullptr),
      events(steps.size(), nullptr) {
  for (std::uint32_t l = 0; l < plan.lanes.size(); ++l)
    for (const std::uint32_t command : plan.lanes[l].commands) lane_of[command] = l;
  const auto &commands = plan.text->commands;
  // So that what ends while it runs needs no memory.
  stageable.reserve(static_cast<std::size_t>(
      std::count_if(commands.begin(), commands.end(), [](const command &c) { return !on_device(c.kind); })));
  for (std::uint32_t i = 0; i < commands.size(); ++i) {
    const command &c = commands[i];
    if (on_device(c.kind)) continue;
    blockers[i] = c.waits;
    if (c.waits == 0) stageable.push_back(i);
  }
}

}  // namespace sg
