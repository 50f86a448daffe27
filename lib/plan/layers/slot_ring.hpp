// SPDX-License-Identifier: Apache-2.0
// Device buffers that the blocks of an operand use in turn.
#pragma once

#include <algorithm>
#include <vector>

#include "base/checked.hpp"
#include "plan/schedule/schedule_builder.hpp"

namespace sg {

class slot_ring {
 public:
  struct slot {
    std::int32_t buffer = -1;
    std::vector<std::uint32_t> users;  // commands that complete before it is filled again
  };

  // A block copied in, one in use, one copied out or next.
  static constexpr std::size_t most_slots = 3;

  slot_ring() = default;
  // For blocks of these extents in one dimension, and of `other` in the other one.
  slot_ring(schedule_builder &builder, sg_dtype type, const std::vector<range> &blocks, std::int64_t other)
      : slots_(std::min(most_slots, blocks.size())) {
    std::int64_t most = 0;
    for (const range &each : blocks) most = std::max(most, each.size);
    for (slot &s : slots_)
      s.buffer =
          builder.add_device_buffer(type, checked_mul(checked_mul(most, other, "a block"), size_of(type), "a block"));
  }
  slot &next() { return slots_[turn_++ % slots_.size()]; }

 private:
  std::vector<slot> slots_;
  std::size_t turn_ = 0;
};

}  // namespace sg
