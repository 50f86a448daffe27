// SPDX-License-Identifier: Apache-2.0
// Operations on triangular and symmetric matrices whose operands lie in host memory, in tiles: copies overlap with
// computing, and the operands may be larger than the device's memory.
#pragma once

#include <functional>
#include <optional>

#include "plan/form/command_form.hpp"

namespace sg {

// A schedule with tiles of at most `edge` rows and columns. Empty if the memory limit is too low; `needed` becomes the
// bytes that a step takes.
std::optional<schedule> build_tiled(const command_form &f, std::int64_t edge, std::int64_t group,
                                    const plan_terms &terms, std::int64_t *needed = nullptr);

// The fastest by its prediction of `whole`, which moves whole operands, and of schedules in tiles. Throws
// SG_STATUS_OUT_OF_MEMORY, with the requirement.
schedule plan_in_tiles(const command_form &f, const plan_terms &terms, const std::function<schedule()> &whole);

}  // namespace sg
