// SPDX-License-Identifier: Apache-2.0
// Runs a schedule in virtual time. Lanes are queues, except the one of host workers, whose number is in the model.
// Copies share the link, kernels the chip, host workers the host's memory: active commands share a resource and
// progress accordingly until the next event. Devices of a machine share its limits (model/rates.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/machine_model.hpp"
#include "plan/schedule/schedule.hpp"

namespace sg {

struct interval {
  double start = 0, end = 0;  // seconds from the start of the schedule
  lane where;                 // of staging: the worker's
};

struct timeline {
  std::vector<interval> commands;                    // by index of command
  double seconds = 0;                                // end of the last command
  std::vector<std::array<double, lane_kinds>> busy;  // by device: time with at least one active lane of each kind
  // Overlapped share of the time that could overlap with the busiest kind of lane of a device: 0 sequential, 1 all.
  double overlap_efficiency = 1;
};

// On a device of that model, on several of them, or on a machine with the devices of the schedule's lanes.
timeline simulate(const schedule &s, const device_model &model);
timeline simulate(const schedule &s, const machine_model &machine);
// `jobs`: by command, the number of its job. A lane takes the commands of a job in their order, and jobs as they become
// ready.
timeline simulate(const schedule &s, const machine_model &machine, std::span<const std::uint32_t> jobs);

}  // namespace sg
