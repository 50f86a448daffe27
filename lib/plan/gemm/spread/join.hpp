// SPDX-License-Identifier: Apache-2.0
// The schedules of several devices, each for its part of a problem, as one. What each of them brings of an operand that
// all of them need is copied over the host's links once: each device brings a part of it and pulls the others from the
// devices that brought them.
#pragma once

#include <optional>
#include <vector>

#include "plan/gemm/spread/partition.hpp"
#include "plan/schedule/schedule.hpp"

namespace sg {

struct device_schedule {
  problem_part part;
  schedule s;  // for the first device, with the part's operands as its parameters
};

// `spread`: the operands that are brought in parts, as shared_operands() says; `weights`: of the parts, by device.
// `ahead`: a device's copies in wait until fewer than so many of its copies out before them are left; 0: they do not.
// Empty if the schedules do not bring them in the same order.
std::optional<schedule> join(const problem &whole, const std::vector<device_schedule> &parts, std::uint32_t spread,
                             std::span<const double> weights, std::size_t ahead = 0);

}  // namespace sg
