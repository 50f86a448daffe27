// SPDX-License-Identifier: Apache-2.0
// The submissions of successive batches as one schedule, with the waits that the order of their memory gives: for the
// hazard check and the simulator. It is not run: each submission is a job of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/machine_model.hpp"
#include "plan/schedule/schedule.hpp"
#include "run/pipeline/batch.hpp"

namespace sg {

struct batch_schedule {
  schedule whole;
  std::vector<std::uint32_t> ends;  // of each round: one past its last command
  std::vector<std::uint32_t> jobs;  // by command: the number of its submission
};

// For the simulator: submissions share the lanes, so that one computes at a time (on cores each as its program says).
// How much of two short GEMMs runs at a time depends on the moment, so it is not counted on. Copies from other devices
// of the machine are peer copies.
// `only`: the submissions with that role.
batch_schedule simulated_schedule(const std::vector<batch_list> &rounds, const machine_model &machine,
                                  const memory_kinds &memory, std::optional<batch_role> only = {});
// For the hazard check: a lane for each submission, so that nothing but waits orders them; staged copies are one
// command, as their own schedules are checked where they are made.
batch_schedule checked_schedule(const std::vector<batch_list> &rounds);

}  // namespace sg
