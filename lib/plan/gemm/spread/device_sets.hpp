// SPDX-License-Identifier: Apache-2.0
// Which devices of a machine to compute on together, and what their links give them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/machine_model.hpp"
#include "plan/gemm/resident/cost.hpp"
#include "plan/gemm/resident/problem.hpp"

namespace sg {

// Bytes per second of copies in on all of these devices at once, of each; of copies out; and of both at once, in and
// out.
struct set_rates {
  std::vector<double> in, out;
  double both = 0;
};
set_rates rates_together(const machine_model &machine, std::span<const device_index> devices);

// Whether each can copy from each other without crossing the links to the host.
bool are_peers(const machine_model &machine, std::span<const device_index> devices);

// The best `count` devices of `among`: peers, if there are such, with the fastest copies together.
std::vector<device_index> best_set(const machine_model &machine, std::span<const device_index> among,
                                   std::size_t count);

// The least time that the rates of these devices allow.
time_bound bound_seconds(const machine_model &machine, std::span<const problem> problems,
                         std::span<const device_index> devices);

}  // namespace sg
