// SPDX-License-Identifier: Apache-2.0
// Which bytes a checked operand consists of, and in what kind of memory they lie.
#pragma once

#include <cstdint>

#include "api/given_operand.hpp"
#include "plan/problem.hpp"
#include "run/binding.hpp"
#include "run/context.hpp"
#include "run/footprint.hpp"

namespace sg {

// Bytes from an item's first element to behind its last; 0 when it is empty. Throws on overflow.
std::int64_t span_bytes(const operand &o, const char *what);
// The same for all items, unless they lie anywhere.
std::int64_t total_bytes(const operand &o, std::int64_t batch, const char *what);

// Footprints that it takes to name all items, and the one number `item`.
std::int64_t pieces_of(const operand &o, std::int64_t batch);
// Where items lie with gaps in and between them, their one footprint holds the gaps too: it is not exact.
bool has_exact_footprint(const operand &o, std::int64_t batch);
footprint footprint_of(const operand &o, std::int64_t batch, const operand_address &where, std::int64_t item);

// The operand's place: by its pointers, unless the caller says. Throws when the two disagree.
sg_memory_kind place_of(const context &on, const given_operand &x, const operand &o, std::int64_t batch,
                        const operand_address &where, sg_memory_kind known, bool pointers_given);

}  // namespace sg
