// SPDX-License-Identifier: Apache-2.0
// Schedules of a problem in host memory on several devices of a machine.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/machine_model.hpp"
#include "plan/form/plan_request.hpp"
#include "plan/gemm/spread/partition.hpp"
#include "plan/gemm/streaming/stream_layouts.hpp"

namespace sg {

// Limit of a job's device memory on each device of the machine, by index.
using memory_limits = std::span<const std::int64_t>;

// How a problem is spread.
struct spread_choice {
  spread_axis axis = spread_axis::n;
  bool by_peers = true;              // operands that all need are brought once, in parts; otherwise by each device
  panel_choice panels;               // of each device's part
  std::optional<tile_choice> tiles;  // instead of panels
  std::int64_t groups = 0;           // instead: of items; 0: none
  std::size_t ahead = 0;             // as in join()
};

// The schedule of a choice, with the parts in proportion to the shares. Empty if it does not fit the devices' memory.
std::optional<schedule> build_spread(const problem &p, const machine_model &machine,
                                     std::span<const device_index> devices, std::span<const double> shares,
                                     const spread_choice &choice, memory_limits limits);

// The fastest found on exactly these devices; empty if the problem cannot be spread over them.
std::optional<schedule> plan_spread(const problem &p, const machine_model &machine,
                                    std::span<const device_index> devices, const plan_request &request,
                                    memory_limits limits);

}  // namespace sg
