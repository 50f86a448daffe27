// SPDX-License-Identifier: Apache-2.0
// Runs a schedule in virtual time. Lanes are queues, but for the one of host workers, of whom the model says how many
// there are; copies contend for the link, kernels for the chip, host workers for the host's memory: whatever is active
// at a moment shares its resource, and progresses accordingly until the next event.
#pragma once

#include <vector>

#include "plan/model/machine_model.hpp"
#include "plan/schedule/schedule.hpp"

namespace sg {

struct interval {
  double start = 0, end = 0;  // seconds from the start of the schedule
  lane where;                 // of what host workers do: which one did it
};

struct timeline {
  std::vector<interval> commands;          // by index of command
  double seconds = 0;                      // end of the last command
  double busy[lane_kinds] = {0, 0, 0, 0};  // time in which at least one lane of the kind works
  // Share of the time that can be hidden behind the busiest kind of lane which is hidden: 0 one after the other, 1 all.
  double overlap_efficiency = 1;
};

// On a device of that model, or on several of them; on a machine that has the devices that the lanes name.
timeline simulate(const schedule &s, const device_model &model);
timeline simulate(const schedule &s, const machine_model &machine);

}  // namespace sg
