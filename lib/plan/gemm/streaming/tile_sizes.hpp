// SPDX-License-Identifier: Apache-2.0
// Sizes of tiles worth trying for operands on the host.
#pragma once

#include <vector>

#include "plan/gemm/resident/candidate.hpp"
#include "plan/gemm/streaming/stream_layouts.hpp"

namespace sg {

// Device memory of tiles: one panel of each operand on the host, and accumulators where C is too narrow.
std::int64_t tile_bytes(const problem &p, const tile_choice &tiles);

struct tile_fit {
  tile_choice tiles;
  std::int64_t bytes = 0;  // their device memory; 0: even the largest tiles make too many commands
  bool fits = false;
  bool is_cut_short = false;  // smaller tiles would need less, but make too many commands
};
// The largest tiles that fit the limit, or the smallest possible ones if none do. Requested sizes (> 0) are kept.
tile_fit fit_tiles(const problem &p, std::int64_t asked_m, std::int64_t asked_n, std::int64_t asked_k,
                   std::int64_t limit, double most_commands);

// The tiles with at most that many GEMMs that fit twice, ranked by a rough estimate, the best first.
std::vector<tile_choice> promising_tiles(const problem &p, const plan_terms &terms, double most_gemms);

}  // namespace sg
