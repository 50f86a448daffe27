// SPDX-License-Identifier: Apache-2.0
// Splits of a problem whose operands lie on the device into parts on several compute lanes.
#pragma once

#include "plan/gemm/schedule_builder.hpp"

namespace sg {

// Blocks of C: `parts_m` x `parts_n` of them, dealt to the lanes in turn. Each is computed in `parts_k` consecutive
// pieces of depth, which accumulate in C (parts_k > 1: C's type must be its accumulator).
struct grid_split {
  std::int64_t parts_m = 1, parts_n = 1, parts_k = 1;
};
schedule build_grid_split(const problem &p, grid_split grid, int lanes);

// Ranges of the batch, dealt to the lanes in turn.
schedule build_batch_split(const problem &p, std::int64_t parts, int lanes);

// Ranges of the depth, each into a partial result of its own, which are added up in their order afterwards.
// reduce_lanes: over how many lanes the adding is spread.
schedule build_depth_split(const problem &p, std::int64_t parts, int lanes, int reduce_lanes);
// Device memory that the partial results need.
std::int64_t depth_split_bytes(const problem &p, std::int64_t parts);

}  // namespace sg
