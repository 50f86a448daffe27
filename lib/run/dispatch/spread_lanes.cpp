// SPDX-License-Identifier: Apache-2.0
#include "run/dispatch/spread_lanes.hpp"

#include <algorithm>
#include <utility>

#include "base/backoff.hpp"

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
  for (const auto &each : replaced_)
    for (backoff some; each->in_flight.load(std::memory_order_acquire) > 0;) some.pause();
  for (const lane_list *list : {&copies_, &compute_, &replaced_, &unusable_})
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

// One whose commands have all completed, also a wait for an event without a command behind it; nullptr: there is none.
std::unique_ptr<lane_slot> spread_lanes::take_replaced(std::uint32_t number) noexcept {
  const auto is_at_rest = [&](const std::unique_ptr<lane_slot> &each) {
    const sg_backend_ops &ops = device_.ops();
    return each->index == number && each->in_flight.load(std::memory_order_acquire) == 0 &&
           (!ops.stream_status || ops.stream_status(each->stream) == SG_STATUS_OK);
  };
  const auto found = std::find_if(replaced_.begin(), replaced_.end(), is_at_rest);
  if (found == replaced_.end()) return nullptr;
  std::unique_ptr<lane_slot> taken = std::move(*found);
  replaced_.erase(found);
  return taken;
}

// Counts a marker behind the lane's commands as one in flight. False: the lane takes no commands.
bool spread_lanes::mark_end(lane_slot &of) const noexcept {
  const sg_backend_done done{[](void *user, const sg_backend_result *) {
                               static_cast<lane_slot *>(user)->in_flight.fetch_sub(1, std::memory_order_release);
                             },
                             &of};
  of.in_flight.fetch_add(1, std::memory_order_relaxed);
  if (device_.enqueue(of.stream, marker_command, done) == SG_STATUS_OK) return true;
  of.in_flight.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

void spread_lanes::replace(const lane_slot &old) noexcept {
  for (lane_list *list : {&copies_, &compute_})
    for (auto &each : *list) {
      if (each.get() != &old) continue;
      try {
        replaced_.reserve(replaced_.size() + 1);
        unusable_.reserve(unusable_.size() + 1);
        auto other = take_replaced(old.index);
        if (!other) other = make(old.index);
        (mark_end(*each) ? replaced_ : unusable_).push_back(std::exchange(each, std::move(other)));
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
