// SPDX-License-Identifier: Apache-2.0
// Operations on triangular and symmetric matrices as sequences of commands on tiles of their operands: the operation
// itself on tiles of the diagonal, GEMMs on the others. No tile of the result is read after it is complete, except for
// a solve's, which the rest of its panel reads.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/form/command_form.hpp"
#include "plan/schedule/schedule_builder.hpp"

namespace sg {

struct tile_index {
  std::int32_t parameter = -1;  // negative: the command has no such view
  std::int32_t row = 0, col = 0;
  bool operator==(const tile_index &) const = default;
};

// The tiles are those of the operands as the commands take them.
struct tiling {
  static constexpr std::size_t most_operands = 3;
  struct step {
    payload what;
    std::array<tile_index, most_operands> tiles{};  // by view of `what`
  };
  struct grid {
    std::vector<range> rows, cols;
  };
  std::array<grid, most_operands> grids;  // by parameter
  std::vector<step> steps;
  std::int64_t sweep = 1;  // steps between uses of neighbouring tiles
};

bool has_tiles(const command_form &f) noexcept;
// Approximately, with tiles of at most `edge` rows and columns.
double steps_of(const command_form &f, std::int64_t edge);
// The largest group for which so many tiles on the device suffice, and the next ones beside them; at least 1.
std::int64_t group_within(const command_form &f, std::int64_t edge, std::int64_t tiles);
// `group`: tiles of the result that stay on the device, of each dimension; of a triangular operation in those columns,
// or rows, that are independent.
tiling tiles_of(const command_form &f, std::int64_t edge, std::int64_t group);

}  // namespace sg
