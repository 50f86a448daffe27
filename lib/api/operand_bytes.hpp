// SPDX-License-Identifier: Apache-2.0
// Which bytes a checked operand consists of, and in what kind of memory they lie.
#pragma once

#include <cstdint>

#include "api/given_operand.hpp"
#include "ops/binding.hpp"
#include "plan/gemm/problem.hpp"
#include "run/memory/memory_kinds.hpp"
#include "run/order/footprint.hpp"

namespace sg {

// Bytes from an item's first element to behind its last; 0 when it is empty. Throws on overflow.
std::int64_t span_bytes(const operand &o, const char *what);
// The same for all items, unless they lie anywhere.
std::int64_t total_bytes(const operand &o, std::int64_t batch, const char *what);

// Of all items, or of the first one where they lie anywhere. Where items lie with gaps in and between them it holds the
// gaps too: it is not exact.
footprint footprint_of(const operand &o, std::int64_t batch, const operand_address &where);
bool has_exact_footprint(const operand &o, std::int64_t batch);
// Footprints that it takes to name all items.
inline std::int64_t footprints_of(const operand &o, std::int64_t batch) { return o.pointer_array ? batch : 1; }
// `each(footprint)` gets these.
template <class Each>
void each_footprint(const operand &o, std::int64_t batch, const operand_address &where, Each &&each) {
  const footprint first = footprint_of(o, batch, where);
  each(first);
  for (std::int64_t i = 1; i < footprints_of(o, batch); ++i) each(first.at(where.items[i]));
}

// `each(footprint)` gets that of each item by itself, without the gaps between them.
template <class Each>
void each_item(const operand &o, std::int64_t batch, const operand_address &where, Each &&each) {
  const std::int64_t element = size_of(o.type), distinct = o.pointer_array || o.item_stride > 0 ? batch : 1;
  for (std::int64_t i = 0; i < distinct; ++i) {
    const char *const start = o.pointer_array ? where.items[i] : where.base + i * o.item_stride * element;
    each(footprint::rectangle(start, o.rows * element, o.cols, o.ld * element));
  }
}

// The operand's place: by its pointers, unless the caller says. Throws when the two disagree.
memory_space space_of(const memory_kinds &kinds, const given_operand &x, const operand &o, std::int64_t batch,
                      const operand_address &where, sg_memory_kind known, bool pointers_given);

}  // namespace sg
