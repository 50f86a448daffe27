// SPDX-License-Identifier: Apache-2.0
// Number of commands of a streaming schedule, before it is built.
#pragma once

#include "plan/gemm/streaming/stream_layouts.hpp"

namespace sg {

// Upper bounds, where host operands are pinned.
double commands_of(const problem &p, const tile_choice &tiles);
double commands_of(const problem &p, const stream_layout &layout);

// Commands of a schedule for pinned operands after staging of p's pageable ones is added.
double commands_when_staged(const schedule &s, const problem &p);

}  // namespace sg
