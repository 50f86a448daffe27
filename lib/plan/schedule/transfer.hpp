// SPDX-License-Identifier: Apache-2.0
// Copies panels of host operands to device memory and back: full rectangles from pinned memory, and chunk by chunk
// through pinned slots that host workers fill and empty for pageable memory. Triangles are divided between columns: the
// rectangle beside each block on the diagonal is copied as any, and the block goes through slots from every host
// memory, since host workers alone copy a triangle of it. On the device the rest of the block holds anything.
#pragma once

#include <map>
#include <vector>

#include "model/device_model.hpp"
#include "plan/schedule/schedule_builder.hpp"

namespace sg {

// A part of an operand that is copied at once: a block in each of some items. `items` is {0, 1} for a shared operand.
struct panel {
  range items{0, 1};
  block where;
  stored_part accessed = stored_part::all;  // a triangle: of a square block of one item
};

// Number of rectangles of a panel with leading dimension `ld` on the device: one if its items are columns of one
// rectangle, otherwise one for each item.
std::int64_t rectangles_of(const operand &x, const panel &what, std::int64_t ld);
// Approximate upper bound of the chunks of a rectangle of pageable memory.
std::int64_t chunks_of(const view &rectangle, std::int64_t element_bytes);

// Whether the padding between a pinned operand's columns is small enough to be copied, too: no inaccessible page fits
// into the padding, and a panel of full columns becomes one run. The gap between items of a batch is never copied.
bool copies_padding(const operand &x);

// The location of a panel on the device. `buffer` has the operand's type there, which may be a narrower one; its items
// are `item_stride` elements apart, as in the buffer.
struct device_location {
  std::int32_t buffer = -1;
  std::int64_t item = 0;    // of the buffer: the panel's first item
  std::int64_t offset = 0;  // bytes, of the panel's first element in its item
  std::int64_t ld = 0;
  std::int64_t item_stride = 0;
};

// A ring of pinned slots.
class staging_ring {
 public:
  struct slot {
    std::map<sg_dtype, std::int32_t> buffers;  // the slot viewed as each type
    std::vector<std::uint32_t> users;          // commands that complete before it is refilled
  };

  // `all_bytes`: of the host, that will go through it.
  staging_ring(schedule_builder &builder, std::int64_t workers, std::int64_t slots, std::int64_t slot_bytes,
               double all_bytes);

  slot &next_slot(double chunk_bytes);
  std::int32_t buffer_of(slot &s, sg_dtype type);
  std::int64_t slot_bytes() const noexcept { return slot_bytes_; }
  std::int64_t piece_bytes() const noexcept;  // that one worker moves, of the latest slot

 private:
  schedule_builder &builder_;
  std::int64_t workers_, slot_bytes_;
  double all_bytes_, done_ = 0;
  std::int64_t chunks_ = 0;
  std::vector<slot> slots_;
};

// Bytes that a panel moves through slots.
double staged_bytes(const operand &x, const panel &what);

// Bytes through slots in each direction.
struct pageable_bytes {
  double in = 0, out = 0;
  std::int64_t ahead = 1;  // times the usual slots, where workers pack long before the copies
};

class transfers {
 public:
  transfers(schedule_builder &builder, const device_model &model, pageable_bytes bytes);

  // Appends the copies of a panel of a parameter; returns the last one on the copy lane. `waits`: commands that use the
  // location.
  std::uint32_t in(std::int32_t parameter, const panel &what, const device_location &to,
                   std::span<const std::uint32_t> waits);
  // `waits`: commands that write the location.
  std::uint32_t out(std::int32_t parameter, const panel &what, const device_location &from,
                    std::span<const std::uint32_t> waits);

 private:
  struct rectangle {
    view host, device;
    stored_part accessed = stored_part::all;  // a triangle: with the diagonal from the first element on
  };
  std::vector<rectangle> rectangles(std::int32_t parameter, const panel &what, const device_location &location) const;
  void add_rectangles(std::vector<rectangle> &to, std::int32_t parameter, const panel &what,
                      const device_location &location) const;
  std::uint32_t staged_in(const rectangle &r, sg_dtype from, sg_dtype type, std::span<const std::uint32_t> waits);
  std::uint32_t staged_out(const rectangle &r, sg_dtype type, std::span<const std::uint32_t> waits);

  schedule_builder &builder_;
  std::vector<staging_ring> rings_;  // in, out; empty where nothing is staged
};

}  // namespace sg
