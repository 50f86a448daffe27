// SPDX-License-Identifier: Apache-2.0
#include "run/objects/named_lane.hpp"

#include "base/error.hpp"

namespace sg {

namespace {

const char *what_fills(lane_use use) noexcept {
  switch (use) {
    case lane_use::native: return "native streams are wrapped";
    case lane_use::events: return "lanes are there for events";
    case lane_use::partition: return "streams have compute units set aside";
    case lane_use::any: break;
  }
  return "lanes are there";
}

}  // namespace

named_lane::named_lane(context &on, void *native) : on_(on) {
  const device &where = on.on();
  if (!where.ops().stream_wrap || !on.follows_on_device())
    throw error(SG_STATUS_UNSUPPORTED, "%s has no native streams to wrap", where.name().c_str());
  slot_.use = lane_use::native;
  where.check(where.ops().stream_wrap(where.handle(), native, &slot_.stream), "wrapping a native stream");
  admit();
}

named_lane::named_lane(context &on) : on_(on) {
  slot_.use = lane_use::events;
  slot_.stream = on.on().stream_create(0);
  admit();
}

named_lane::named_lane(context &on, std::int32_t priority, std::int32_t &units) : on_(on) {
  const device &where = on.on();
  if (!where.ops().stream_create_within || !on.follows_on_device())
    throw error(SG_STATUS_UNSUPPORTED, "%s sets no compute units aside", where.name().c_str());
  slot_.use = lane_use::partition;
  where.check(where.ops().stream_create_within(where.handle(), priority, &units, &slot_.stream),
              "setting compute units aside");
  admit();
}

void named_lane::admit() {
  try {
    slot_.tail = on_.on().event_create();
    if (!on_.executor().admit(slot_))
      throw error(SG_STATUS_BUSY, "%zu %s, as many as a context has room for", room_for(slot_.use).count,
                  what_fills(slot_.use));
  } catch (...) {
    destroy();
    throw;
  }
}

named_lane::~named_lane() {
  on_.executor().dismiss(slot_);
  destroy();
}

void named_lane::destroy() noexcept {
  const sg_backend_ops &ops = on_.on().ops();
  ops.stream_destroy(slot_.stream);
  if (slot_.tail) ops.event_destroy(slot_.tail);
}

}  // namespace sg
