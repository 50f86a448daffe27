// SPDX-License-Identifier: Apache-2.0
// Which sizes of tiles are worth trying for operands on the host.
#pragma once

#include <vector>

#include "plan/gemm/candidate.hpp"
#include "plan/streaming/stream_layouts.hpp"

namespace sg {

// Device memory that tiles need: one panel of each operand on the host, and sums where C is too narrow for them.
std::int64_t tile_bytes(const problem &p, const tile_choice &tiles);

struct tile_fit {
  tile_choice tiles;
  std::int64_t bytes = 0;  // that they need; 0: even the largest tiles make too many commands
  bool fits = false;
  bool is_cut_short = false;  // smaller ones would need less, but make too many commands
};
// The largest tiles that fit the limit, the least possible ones when none do. Sizes > 0 are kept as asked.
tile_fit fit_tiles(const problem &p, std::int64_t asked_m, std::int64_t asked_n, std::int64_t asked_k,
                   std::int64_t limit, double most_commands);

// Those of at most so many products that fit twice over and that a rough estimate likes best, the best first.
std::vector<tile_choice> promising_tiles(const problem &p, const plan_terms &terms, double most_gemms);

}  // namespace sg
