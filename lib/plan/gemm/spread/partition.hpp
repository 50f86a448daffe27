// SPDX-License-Identifier: Apache-2.0
// A problem cut into one part for each device, along one of its dimensions.
#pragma once

#include <span>
#include <vector>

#include "base/device_index.hpp"
#include "plan/gemm/resident/gemm_builder.hpp"

namespace sg {

enum class spread_axis : std::uint8_t { n, m, items };

struct problem_part {
  problem p;  // as the device computes it
  device_index device{};
  range m, n, items;  // of the whole problem
};

// Parts in proportion to the shares; edges are multiples of 128 columns or rows, where there are enough. A device
// without any is left out.
std::vector<problem_part> cut_problem(const problem &p, spread_axis axis, std::span<const device_index> devices,
                                      std::span<const double> shares);

// Ranges of [0, total) in proportion to the weights; empty ones, too. Inner edges are multiples of `grain`.
std::vector<range> cut_by_weight(std::int64_t total, std::span<const double> weights, std::int64_t grain);

// The block of an operand that a part has, and the first of its items.
struct part_origin {
  block where;
  std::int64_t item = 0;
};
part_origin origin_of(const problem &whole, const problem_part &part, operand_name name);

// The operands, in host memory, of which each part needs the same: bit i is operand i.
std::uint32_t shared_operands(const problem &whole, spread_axis axis);

}  // namespace sg
