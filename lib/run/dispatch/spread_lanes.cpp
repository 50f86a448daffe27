// SPDX-License-Identifier: Apache-2.0
#include "run/dispatch/spread_lanes.hpp"

#include <algorithm>

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
  for (int i = 0; i < 3; ++i) copies_.push_back(nullptr);
  try {
    for (auto &each : copies_) {
      each = std::make_unique<lane_slot>();
      each->device = index_;
      each->index = first_number + static_cast<std::uint32_t>(&each - copies_.data());
      each->stream = device_.stream_create(0);
    }
  } catch (...) {
    for (auto &each : copies_)
      if (each && each->stream) device_.ops().stream_destroy(each->stream);
    throw;
  }
}

spread_lanes::~spread_lanes() {
  for (const auto *list : {&copies_, &compute_})
    for (const auto &each : *list) device_.ops().stream_destroy(each->stream);
}

void spread_lanes::reserve(std::uint32_t count) {
  while (compute_.size() < std::min<std::size_t>(count, most_compute)) {
    auto made = std::make_unique<lane_slot>();
    made->device = index_;
    made->index = first_number + static_cast<std::uint32_t>(copies_.size() + compute_.size());
    compute_.reserve(compute_.size() + 1);
    made->stream = device_.stream_create(0);
    compute_.push_back(std::move(made));
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
