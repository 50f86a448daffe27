// SPDX-License-Identifier: Apache-2.0
#include "run/dispatch/run_device.hpp"

#include <new>

namespace sg {

run_device::~run_device() {
  for (sg_backend_event *unused : events_) on_.ops().event_destroy(unused);
}

void run_device::open_lanes(device_index index, std::uint32_t compute) {
  if (!lanes_) lanes_ = std::make_unique<spread_lanes>(on_, index);
  lanes_->reserve(compute);
}

sg_backend_event *run_device::record(sg_backend_stream *in) {
  if (events_.empty()) {
    events_.reserve(1);  // first, so that a made event can always be stored
    events_.push_back(on_.event_create());
  }
  sg_backend_event *const event = events_.back();
  on_.check(on_.ops().event_record(event, in), "recording an event");
  events_.pop_back();
  return event;
}

void run_device::release(sg_backend_event *event) noexcept {
  try {
    events_.push_back(event);
  } catch (const std::bad_alloc &) {
    on_.ops().event_destroy(event);
  }
}

}  // namespace sg
