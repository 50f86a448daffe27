// SPDX-License-Identifier: Apache-2.0
// An operation as the planner, the hazard check, the simulator and descriptions see it: one table entry each.
#pragma once

#include <span>
#include <string>

#include "model/device_model.hpp"
#include "ops/backend_commands.hpp"
#include "ops/command.hpp"

namespace sg {

// Cost of a command on a device model: bytes at a rate (copies, staging) or seconds at speed 1 (kernels).
struct command_cost {
  double amount = 0;
  double one_way = 0, both_ways = 0;        // copies: bytes per second
  double chip_share = 0, memory_share = 0;  // kernels
  double delay_idle = 0, delay_queued = 0;  // before the work starts, on an idle and on a busy engine
};

struct operation {
  const char *name;  // in descriptions
  // The access mode of the command's view with that index, which exists.
  access_mode (*access)(const command &c, std::size_t view);
  // The defect of a command whose views are in their buffers; nullptr: none.
  const char *(*defect)(const buffer_list &buffers, const command &c);
  command_cost (*cost)(const device_model &model, const buffer_list &buffers, const command &c);
  // A short description.
  std::string (*describe)(const buffer_list &buffers, const command &c);
  // Lowers to backend commands; nullptr: host workers run it.
  void (*lower)(const buffer_list &buffers, const command &c, const binding &where, backend_commands &out);
  // The kind of those backend commands, and the seconds of one, for sg_backend_host.
  sg_backend_command_kind lowered;
  double (*seconds)(const device_model &model, const sg_backend_command &command, bool both_ways);
};

// By payload index.
std::span<const operation *const, operation_count> operations() noexcept;
inline const operation &operation_of(const command &c) noexcept { return *operations()[c.what.index()]; }

// Sets the access mode of each view of the command.
void set_access_modes(command &c) noexcept;

}  // namespace sg
