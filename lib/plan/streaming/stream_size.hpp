// SPDX-License-Identifier: Apache-2.0
// How many commands a streaming schedule gets, known before it is built.
#pragma once

#include "plan/streaming/stream_layouts.hpp"

namespace sg {

// Upper bounds, where host operands are pinned.
double commands_of(const problem &p, const tile_choice &tiles);
double commands_of(const problem &p, const stream_layout &layout);

// Commands of a schedule for pinned operands when the copies of p's pageable ones go through staging slots.
double commands_when_staged(const schedule &s, const problem &p);

}  // namespace sg
