// SPDX-License-Identifier: Apache-2.0
#include "run/schedule_run.hpp"

namespace sg {

schedule_run::schedule_run(const compiled_plan &plan)
    : steps(plan.text->commands.size(), step::waiting),
      lanes(plan.lanes.size()),
      lane_of(steps.size()),
      flights(std::make_unique<flight[]>(steps.size())),
      slots(steps.size(), nullptr),
      events(steps.size(), nullptr) {
  for (std::uint32_t l = 0; l < plan.lanes.size(); ++l)
    for (const std::uint32_t command : plan.lanes[l].commands) lane_of[command] = l;
}

}  // namespace sg
