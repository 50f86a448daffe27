// SPDX-License-Identifier: Apache-2.0
#include "run/objects/event_lanes.hpp"

#include <algorithm>

#include "run/objects/dedicated_lane.hpp"

namespace sg {

namespace {

std::int32_t load_of(const std::unique_ptr<dedicated_lane> &lane) noexcept {
  return lane->slot().in_flight.load(std::memory_order_relaxed);
}

}  // namespace

event_lanes::event_lanes(const device &on, engine &in) noexcept : device_(on), engine_(in) {}
event_lanes::~event_lanes() = default;

lane_slot &event_lanes::least_busy() {
  const std::lock_guard lock(lock_);
  const auto least = std::min_element(lanes_.begin(), lanes_.end(),
                                      [](const auto &a, const auto &b) { return load_of(a) < load_of(b); });
  if (least != lanes_.end() && (load_of(*least) == 0 || lanes_.size() == room_for(lane_use::events).count))
    return (*least)->slot();
  lanes_.push_back(std::make_unique<dedicated_lane>(device_, engine_));
  return lanes_.back()->slot();
}

}  // namespace sg
