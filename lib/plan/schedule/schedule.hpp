// SPDX-License-Identifier: Apache-2.0
// A schedule: the commands of an operation as plain data. It holds no pointer to memory and
// no backend object, so it can be cached, checked, simulated and run any number of times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/command.hpp"

namespace sg {

// A device that the request allows, and whose part of the work is not worth its time.
struct left_out_device {
  device_index device{};
  double share = 0;    // of the arithmetic that it would have
  double seconds = 0;  // that all would take with it
};

// What a schedule of one device would take on more devices of its machine.
struct time_on_devices {
  std::int32_t devices = 0;
  double seconds = 0;
};

struct schedule {
  std::string strategy;  // one word or a few: "direct", "split-n x2", "stream ..."
  std::vector<buffer> buffers;
  std::vector<command> commands;                  // topologically ordered: every wait points backwards
  std::vector<std::uint32_t> waits;               // indices of commands
  std::int64_t device_bytes = 0;                  // size of the device arena; with several devices, of the largest
  std::int64_t staging_bytes = 0;                 // size of the staging arena; with several devices, of the largest
  std::uint16_t lanes[lane_kinds] = {};           // number of lanes of each kind; of staging, workers
  double flops = 0, bytes_in = 0, bytes_out = 0;  // work and bytes over the links to the host
  double bytes_peer = 0;                          // from device to device
  double predicted_seconds = 0;                   // by the simulator, on the model that it was planned for
  double bound_seconds = 0;                       // the least time that the model's rates allow (see cost.hpp)
  const char *bound_limit = "";                   // what binds, if it is known: a literal
  std::vector<left_out_device> left_out;          // of several devices, for their speed
};

}  // namespace sg
