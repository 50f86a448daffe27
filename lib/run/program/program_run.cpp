// SPDX-License-Identifier: Apache-2.0
#include "run/program/program_run.hpp"

#include <algorithm>
#include <utility>

namespace sg {

program_run::program_run(std::shared_ptr<const sg::program> of, run_pool &pool)
    : states(of->schedule->commands.size(), command_state::waiting),
      lanes(of->lanes.size()),
      lane_of(states.size(), UINT32_MAX),
      inflight(std::make_unique<inflight_command[]>(states.size())),
      slots(states.size(), nullptr),
      events(states.size(), nullptr),
      program_(std::move(of)),
      pool_(pool),
      first_blockers_(states.size(), 0) {
  const sg::program &compiled = *program_;
  for (std::uint32_t l = 0; l < compiled.lanes.size(); ++l)
    for (const std::uint32_t command : compiled.lanes[l].commands) lane_of[command] = l;
  const auto &commands = compiled.schedule->commands;
  // So that completions during the run allocate nothing.
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

void program_run::begin_again() noexcept {
  std::fill(states.begin(), states.end(), command_state::waiting);
  std::fill(lanes.begin(), lanes.end(), lane_progress{});
  std::copy(first_blockers_.begin(), first_blockers_.end(), blockers.begin());
  stageable.assign(first_stageable_.begin(), first_stageable_.end());  // capacity suffices
  std::fill(slots.begin(), slots.end(), nullptr);
  std::fill(events.begin(), events.end(), nullptr);
  completed_count = 0;
  unbatched = false;
  in_flight = 0;
  first_lane = 0;
  used_lanes = 0;
  announced = false;
  left_lanes = false;
}

bytes_moved program_run::moved() const noexcept {
  const schedule &s = *program_->schedule;
  bytes_moved all;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const command &c = s.commands[i];
    if (states[i] == command_state::waiting) continue;
    const bytes_moved moved = bytes_moved_by(s.buffers, c);
    all.in += moved.in;
    if (!copies_slot(s.buffers, c)) all.out += moved.out;
    all.peer += moved.peer;
    if (c.is<ops::unpack>() && !inflight[i].is_skipped) {
      const view &from = c.views[ops::unpack::from];
      all.out += double(from.rows) * double(from.cols) * double(size_of(type_of(s.buffers, from)));
    }
  }
  return all;
}

}  // namespace sg
