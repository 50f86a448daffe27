// SPDX-License-Identifier: Apache-2.0
// A symmetric update in parts of equal work, for several cores: some columns of the triangle each, which are an update
// of the block on the diagonal and GEMMs for the rectangle beside it.
#pragma once

#include <cstdint>
#include <functional>

#include "ops/command.hpp"

namespace sg {

// Calls `add` with the commands of part `index` of `count`, in order, all on lane `index`. `whole`: the update.
void add_triangle_part(const command &whole, sg_dtype type, std::int64_t index, std::int64_t count,
                       const std::function<void(const command &)> &add);

}  // namespace sg
