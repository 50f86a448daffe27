// SPDX-License-Identifier: Apache-2.0
// The commonest schedule: a problem whose operands lie on the device, as one command.
#pragma once

#include "plan/gemm/schedule_builder.hpp"

namespace sg {

// Do an operand's items follow each other without a seam?
inline bool is_one_run(const operand &x) noexcept { return !x.pointer_array && x.item_stride == x.ld * x.cols; }

// Are all items scaled as one matrix? Its columns then have one bias, whichever item they are of.
inline bool scales_at_once(const problem &p) noexcept {
  return p.batch == 1 ||
         (is_one_run(p.c) && (!p.has_bias() || (p.bias.cols == 1 && p.bias.rows == p.m && is_shared(p.bias))));
}

// Commands of the direct schedule.
inline std::int64_t direct_commands(const problem &p) noexcept {
  return p.no_multiply && !scales_at_once(p) ? p.batch : 1;
}

schedule build_direct(const problem &p);

// Appends the commands of one problem of the builder, on one compute lane: one product, or the scaling of C.
void add_direct(schedule_builder &builder, std::int32_t group, std::uint16_t lane_index);

}  // namespace sg
