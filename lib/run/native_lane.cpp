// SPDX-License-Identifier: Apache-2.0
#include "run/native_lane.hpp"

#include "base/error.hpp"

namespace sg {

native_lane::native_lane(context &on, void *native) : on_(on) {
  const device &where = on.on();
  if (!where.ops().stream_wrap || !on.follows_on_device())
    throw error(SG_STATUS_UNSUPPORTED, "%s has no native streams to wrap", where.name().c_str());
  where.check(where.ops().stream_wrap(where.handle(), native, &slot_.stream), "wrapping a native stream");
  admit();
}

native_lane::native_lane(context &on) : on_(on) {
  slot_.of_events = true;
  slot_.stream = on.on().stream_create(0);
  admit();
}

void native_lane::admit() {
  try {
    slot_.tail = on_.on().event_create();
    if (!on_.executor().admit(slot_))
      throw error(SG_STATUS_BUSY, "%d native streams are wrapped, as many as a context has room for",
                  most_native_lanes);
  } catch (...) {
    destroy();
    throw;
  }
}

native_lane::~native_lane() {
  on_.executor().dismiss(slot_);
  destroy();
}

void native_lane::destroy() noexcept {
  const sg_backend_ops &ops = on_.on().ops();
  ops.stream_destroy(slot_.stream);
  if (slot_.tail) ops.event_destroy(slot_.tail);
}

}  // namespace sg
