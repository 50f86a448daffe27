// SPDX-License-Identifier: Apache-2.0
// An operand while a streaming schedule is built: which panel is where on the device, and which command used it last.
#pragma once

#include "plan/streaming/stream.hpp"

namespace sg {

class panel_holder {
 public:
  // Adds the operand's buffers to the schedule. The layout outlives the holder.
  panel_holder(schedule_builder &builder, operand_name name, const stream_layout &layout, const stream_operand &x);

  bool is_held(std::int32_t panel) const { return slot_of_[panel] >= 0; }
  // A slot for the panel: a free one, else the one whose panel is needed last (of those, the one idle for longest).
  std::int32_t choose(std::int32_t panel, std::int64_t step) const;
  // Puts the panel into the slot; what was there is gone.
  void take(std::int32_t panel, std::int32_t slot);

  // The panel is there when these commands have ended; its slot is free when those have.
  std::vector<std::uint32_t> &ready(std::int32_t panel) { return slots_[slot_of_[panel]].ready; }
  std::vector<std::uint32_t> &users(std::int32_t panel) { return slots_[slot_of_[panel]].users; }

  device_location location(std::int32_t panel) const;
  // A part of the operand that the panels from `first` on contain.
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

  schedule_builder &builder_;
  operand_name name_;
  operand held_;  // as it is on the device
  const stream_operand &x_;
  std::vector<std::vector<std::int64_t>> uses_;  // steps that use each panel
  std::vector<std::int32_t> slot_of_;            // -1: not on the device
  std::vector<slot> slots_;                      // of whole operands and those on the device: one for each panel
  std::int32_t filled_ = 0;                      // slots that have had a panel: the first ones
  std::int64_t item_elements_ = 0;
};

}  // namespace sg
