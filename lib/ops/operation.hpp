// SPDX-License-Identifier: Apache-2.0
// What an operation is to the planner, the hazard check, the simulator and descriptions: one entry of a table each.
#pragma once

#include <span>
#include <string>

#include "ops/backend_commands.hpp"
#include "ops/command.hpp"
#include "plan/model/device_model.hpp"

namespace sg {

// What a command costs on a device model: bytes at a rate (copies, staging) or seconds at speed 1 (kernels).
struct command_cost {
  double amount = 0;
  double one_way = 0, both_ways = 0;        // copies: bytes per second
  double chip_share = 0, memory_share = 0;  // kernels
  double delay_idle = 0, delay_queued = 0;  // before the work starts, on an idle engine and on a busy one
};

struct operation {
  const char *name;  // in descriptions
  // How a command accesses the view of that index, which exists.
  access_mode (*access)(const command &c, std::size_t view);
  // Why a command whose views are in their buffers is malformed; nullptr: it is not.
  const char *(*defect)(const buffer_list &buffers, const command &c);
  command_cost (*cost)(const device_model &model, const buffer_list &buffers, const command &c);
  // What it does, in a few words.
  std::string (*describe)(const buffer_list &buffers, const command &c);
  // The backend's commands that carry it out; nullptr: host workers do.
  void (*lower)(const buffer_list &buffers, const command &c, const binding &where, backend_commands &out);
  // Of one of these: its kind, and its seconds, as sg_backend_host gives them.
  sg_backend_command_kind lowered;
  double (*seconds)(const device_model &model, const sg_backend_command &command, bool both_ways);
};

// By the index of their payload.
std::span<const operation *const, operation_count> operations() noexcept;
inline const operation &operation_of(const command &c) noexcept { return *operations()[c.what.index()]; }

// Gives each view of the command the mode that its operation accesses it with.
void set_access_modes(command &c) noexcept;

}  // namespace sg
