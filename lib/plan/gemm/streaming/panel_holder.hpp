// SPDX-License-Identifier: Apache-2.0
// State of an operand while a streaming schedule is built: the device slot of each panel, and its latest users.
#pragma once

#include "plan/gemm/streaming/stream.hpp"

namespace sg {

class panel_holder {
 public:
  // Adds the operand's buffers to the schedule. The layout outlives the holder.
  panel_holder(gemm_builder &builder, operand_name name, const stream_layout &layout, const stream_operand &x);

  bool is_held(std::int32_t panel) const { return slot_of_[panel] >= 0; }
  // A slot for the panel: a free one, else the one whose panel is needed last (of those, the one idle for longest).
  std::int32_t choose(std::int32_t panel, std::int64_t step) const;
  // Assigns the panel to the slot and evicts the slot's old panel.
  void take(std::int32_t panel, std::int32_t slot);

  // The commands after which the panel is valid, and those after which its slot is free.
  std::vector<std::uint32_t> &ready(std::int32_t panel) { return slots_[slot_of_[panel]].ready; }
  std::vector<std::uint32_t> &users(std::int32_t panel) { return slots_[slot_of_[panel]].users; }

  device_location location(std::int32_t panel) const;
  // A part of the operand inside the panels from `first` on.
  view view_of(std::int32_t first, range items, block part) const;

 private:
  struct slot {
    std::int32_t buffer = -1;
    std::int32_t panel = -1;
    std::vector<std::uint32_t> ready, users;
  };

  panel_range range_of(const stream_step &s) const;
  std::int64_t next_use(const slot &s, std::int64_t step) const;
  bool preferred(const slot &a, const slot &b, std::int64_t step) const;

  gemm_builder &builder_;
  operand_name name_;
  operand held_;  // as it is on the device
  const stream_operand &x_;
  std::vector<std::vector<std::int64_t>> uses_;  // steps that use each panel
  std::vector<std::int32_t> slot_of_;            // -1: not on the device
  std::vector<slot> slots_;                      // one for each panel if the operand is complete on the device
  std::int32_t filled_ = 0;                      // slots used so far: the first ones
  std::int64_t item_elements_ = 0;
};

}  // namespace sg
