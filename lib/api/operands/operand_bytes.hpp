// SPDX-License-Identifier: Apache-2.0
// The bytes of a checked operand, and their memory space.
#pragma once

#include <streamgemm/plan.h>

#include <cstdint>

#include "api/operands/given_operand.hpp"
#include "base/checked.hpp"
#include "ops/binding.hpp"
#include "plan/schedule/operand.hpp"
#include "run/memory/memory_kinds.hpp"
#include "run/order/footprint.hpp"
#include "run/order/strided_bytes.hpp"

namespace sg {

// Bytes from an item's first element to its end; 0 if empty. Throws on overflow.
std::int64_t span_bytes(const operand &o, const char *what);
// The same bytes for all items, or for one with a pointer array. Throws on overflow.
std::int64_t total_bytes(const operand &o, std::int64_t batch, const char *what);

// All items, without a pointer array.
strided_bytes bytes_of(const operand &o, std::int64_t batch, const void *start);
// Of one item, or of the first with a pointer array.
footprint footprint_of(const operand &o, const parameter_address &where);
// Number of addresses that it has.
inline std::int64_t addresses_of(const operand &o, std::int64_t batch) { return o.pointer_array ? batch : 1; }
// Calls `each(footprint, exact)` for the footprints of all items, see strided_bytes.
template <class Each>
void each_footprint(const operand &o, std::int64_t batch, const parameter_address &where, Each &&each) {
  if (!o.pointer_array) return each_footprint(bytes_of(o, batch, where.base), each);
  const footprint first = footprint_of(o, where);
  for (std::int64_t i = 0; i < batch; ++i) each(first.at(where.items[i]), true);
}

// Calls `each(footprint)` for each item, without the gaps between items.
template <class Each>
void each_item(const operand &o, std::int64_t batch, const parameter_address &where, Each &&each) {
  const std::int64_t element = size_of(o.type), distinct = o.pointer_array || o.item_stride > 0 ? batch : 1;
  for (std::int64_t i = 0; i < distinct; ++i) {
    const char *const start = o.pointer_array ? where.items[i] : where.base + i * step_bytes(o.item_stride, element, 0);
    each(footprint::rectangle(start, o.rows * element, o.cols, step_bytes(o.ld, element, o.rows * element)));
  }
}

// Whether it is an address of memory; in a plan made ahead an operand may have none.
inline bool has_address(const void *data) noexcept { return data && data != SG_PLAN_ADDRESS; }
// Throws if it is none. `name`: that of the pointer.
void require_address(const void *data, const char *name);
// The memory space of an operand without an address; SG_MEMORY_AUTO: device memory.
memory_space space_without_address(const memory_kinds &kinds, sg_memory_kind kind) noexcept;

// The operand's memory space: by its pointers, unless the caller specifies it. Throws if both disagree.
memory_space space_of(const memory_kinds &kinds, const given_operand &x, const operand &o, std::int64_t batch,
                      const parameter_address &where, sg_memory_kind known, bool pointers_given);

}  // namespace sg
