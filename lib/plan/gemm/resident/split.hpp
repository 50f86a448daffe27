// SPDX-License-Identifier: Apache-2.0
// Splits of a problem with operands on the device over several compute lanes.
#pragma once

#include "plan/gemm/resident/gemm_builder.hpp"

namespace sg {

// Blocks of C: `parts_m` x `parts_n`, distributed round-robin to the lanes. Each is computed in `parts_k` consecutive
// pieces of depth, which accumulate in C (parts_k > 1: C's type must be its accumulator).
struct grid_split {
  std::int64_t parts_m = 1, parts_n = 1, parts_k = 1;
};
schedule build_grid_split(const problem &p, grid_split grid, int lanes);

// Ranges of the batch, distributed round-robin to the lanes.
schedule build_batch_split(const problem &p, std::int64_t parts, int lanes);

// Ranges of the depth, each with its own partial result, which are then added in order. reduce_lanes: lanes for the
// additions.
schedule build_depth_split(const problem &p, std::int64_t parts, int lanes, int reduce_lanes);
// Device memory of the partial results.
std::int64_t depth_split_bytes(const problem &p, std::int64_t parts);

}  // namespace sg
