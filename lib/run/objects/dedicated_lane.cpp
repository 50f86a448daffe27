// SPDX-License-Identifier: Apache-2.0
#include "run/objects/dedicated_lane.hpp"

#include "base/error.hpp"

namespace sg {

namespace {

const char *what_fills(lane_use use) noexcept {
  switch (use) {
    case lane_use::native: return "native streams are wrapped";
    case lane_use::events: return "lanes are there for events";
    case lane_use::partition: return "streams have reserved compute units";
    case lane_use::any: break;
  }
  return "lanes are there";
}

}  // namespace

dedicated_lane::dedicated_lane(const device &on, engine &in, void *native) : device_(on), engine_(in) {
  if (!on.ops().stream_wrap || !on.orders_commands())
    throw error(SG_STATUS_UNSUPPORTED, "%s has no native streams to wrap", on.name().c_str());
  slot_.use = lane_use::native;
  on.check(on.ops().stream_wrap(on.handle(), native, &slot_.stream), "wrapping a native stream");
  admit();
}

dedicated_lane::dedicated_lane(const device &on, engine &in) : device_(on), engine_(in) {
  slot_.use = lane_use::events;
  slot_.stream = on.stream_create(0);
  admit();
}

dedicated_lane::dedicated_lane(const device &on, engine &in, std::int32_t priority, std::int32_t &units)
    : device_(on), engine_(in) {
  if (!on.ops().stream_create_within || !on.orders_commands())
    throw error(SG_STATUS_UNSUPPORTED, "%s sets no compute units aside", on.name().c_str());
  slot_.use = lane_use::partition;
  on.check(on.ops().stream_create_within(on.handle(), priority, &units, &slot_.stream), "setting compute units aside");
  admit();
}

void dedicated_lane::admit() {
  try {
    slot_.tail = device_.event_create();
    if (!engine_.admit(slot_))
      throw error(SG_STATUS_BUSY, "%zu %s, as many as a context has room for", room_for(slot_.use).count,
                  what_fills(slot_.use));
  } catch (...) {
    destroy();
    throw;
  }
}

dedicated_lane::~dedicated_lane() {
  engine_.dismiss(slot_);
  destroy();
}

void dedicated_lane::destroy() noexcept {
  const sg_backend_ops &ops = device_.ops();
  ops.stream_destroy(slot_.stream);
  if (slot_.tail) ops.event_destroy(slot_.tail);
}

}  // namespace sg
