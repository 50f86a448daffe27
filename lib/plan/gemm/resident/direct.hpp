// SPDX-License-Identifier: Apache-2.0
// The most common schedule: one command for a problem whose operands are on the device.
#pragma once

#include "plan/gemm/resident/gemm_builder.hpp"

namespace sg {

// Whether an operand's items are contiguous.
inline bool is_one_run(const operand &x) noexcept { return !x.pointer_array && x.item_stride == x.ld * x.cols; }

// Whether all items can be scaled as one matrix. All columns then have the same bias, whatever their item.
inline bool scales_at_once(const problem &p) noexcept {
  return p.batch == 1 ||
         (is_one_run(p.c) && (!p.has_bias() || (p.bias.cols == 1 && p.bias.rows == p.m && is_shared(p.bias))));
}

// Number of commands of the direct schedule.
inline std::int64_t direct_commands(const problem &p) noexcept {
  return p.no_multiply && !scales_at_once(p) ? p.batch : 1;
}

schedule build_direct(const problem &p);

// Appends the commands of one problem of the builder, on one compute lane: one GEMM, or the scaling of C.
void add_direct(gemm_builder &builder, std::int32_t group, std::uint16_t lane_index);

}  // namespace sg
