// SPDX-License-Identifier: Apache-2.0
#include "run/dispatch/spread_lanes.hpp"

#include <algorithm>
#include <utility>

namespace sg {

namespace {

// As many as lane_set gives a run.
constexpr std::int32_t most_in_lane = 12, copies_until_dry = 3;
constexpr std::size_t most_compute = 16;

std::size_t number_of_copies(lane_kind kind) noexcept {
  return kind == lane_kind::copy_in ? 0 : kind == lane_kind::copy_out ? 1 : 2;
}

}  // namespace

spread_lanes::spread_lanes(const device &on, device_index index) : device_(on), index_(index) {
  copies_.reserve(3);
  try {
    for (std::uint32_t i = 0; i < 3; ++i) copies_.push_back(make(first_number + i));
  } catch (...) {
    for (const auto &each : copies_) device_.ops().stream_destroy(each->stream);
    throw;
  }
}

spread_lanes::~spread_lanes() {
  for (const lane_list *list : {&copies_, &compute_, &replaced_})
    for (const auto &each : *list) device_.ops().stream_destroy(each->stream);
}

std::unique_ptr<lane_slot> spread_lanes::make(std::uint32_t number) const {
  auto made = std::make_unique<lane_slot>();
  made->device = index_;
  made->index = number;
  made->stream = device_.stream_create(0);
  return made;
}

void spread_lanes::reserve(std::uint32_t count) {
  while (compute_.size() < std::min<std::size_t>(count, most_compute)) {
    compute_.reserve(compute_.size() + 1);
    compute_.push_back(make(first_number + static_cast<std::uint32_t>(copies_.size() + compute_.size())));
  }
}

void spread_lanes::replace(const lane_slot &old) noexcept {
  for (lane_list *list : {&copies_, &compute_})
    for (auto &each : *list) {
      if (each.get() != &old) continue;
      try {
        replaced_.reserve(replaced_.size() + 1);
        auto made = make(old.index);
        replaced_.push_back(std::exchange(each, std::move(made)));
      } catch (...) {  // the device is lost, or has no memory left
      }
      return;
    }
}

lane_slot *spread_lanes::find(lane where) noexcept {
  lane_slot *const slot = where.kind == lane_kind::compute ? compute_[where.index % compute_.size()].get()
                                                           : copies_[number_of_copies(where.kind)].get();
  return slot->in_flight.load(std::memory_order_acquire) < most_in_lane ? slot : nullptr;
}

bool spread_lanes::copies_in_run_dry() const noexcept {
  return copies_[0]->in_flight.load(std::memory_order_acquire) < copies_until_dry;
}

}  // namespace sg
