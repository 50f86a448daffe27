// SPDX-License-Identifier: Apache-2.0
#include "run/program/schedule_run.hpp"

#include <algorithm>
#include <utility>

namespace sg {

schedule_run::schedule_run(std::shared_ptr<const compiled_plan> of, run_pool &pool)
    : steps(of->text->commands.size(), step::waiting),
      lanes(of->lanes.size()),
      lane_of(steps.size(), UINT32_MAX),
      flights(std::make_unique<flight[]>(steps.size())),
      slots(steps.size(), nullptr),
      events(steps.size(), nullptr),
      plan_(std::move(of)),
      pool_(pool),
      first_blockers_(steps.size(), 0) {
  const compiled_plan &plan = *plan_;
  for (std::uint32_t l = 0; l < plan.lanes.size(); ++l)
    for (const std::uint32_t command : plan.lanes[l].commands) lane_of[command] = l;
  const auto &commands = plan.text->commands;
  // So that what ends while it runs needs no memory.
  stageable.reserve(static_cast<std::size_t>(
      std::count_if(commands.begin(), commands.end(), [](const command &c) { return !on_device(c.where); })));
  for (std::uint32_t i = 0; i < commands.size(); ++i) {
    const command &c = commands[i];
    if (on_device(c.where)) continue;
    first_blockers_[i] = c.waits;
    if (c.waits == 0) first_stageable_.push_back(i);
  }
  blockers = first_blockers_;
  stageable.assign(first_stageable_.begin(), first_stageable_.end());
}

void schedule_run::begin_again() noexcept {
  std::fill(steps.begin(), steps.end(), step::waiting);
  std::fill(lanes.begin(), lanes.end(), lane_progress{});
  std::copy(first_blockers_.begin(), first_blockers_.end(), blockers.begin());
  stageable.assign(first_stageable_.begin(), first_stageable_.end());  // there is room for all
  std::fill(slots.begin(), slots.end(), nullptr);
  std::fill(events.begin(), events.end(), nullptr);
  ended = 0;
  apart = false;
  in_flight = 0;
}

}  // namespace sg
