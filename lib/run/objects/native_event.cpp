// SPDX-License-Identifier: Apache-2.0
#include "run/objects/native_event.hpp"

#include "base/error.hpp"

namespace sg {

namespace {

void require_native_events(const device &on) {
  const sg_backend_ops &ops = on.ops();
  if (on.unified() || !ops.event_wrap || !ops.event_native || !ops.event_query)
    throw error(SG_STATUS_UNSUPPORTED, "%s has no native events", on.name().c_str());
}

}  // namespace

native_event::native_event(const device &on, void *native) : on_(on) {
  require_native_events(on);
  on.check(on.ops().event_wrap(on.handle(), native, &event_), "wrapping a native event");
}

native_event::native_event(const device &on) : on_(on) {
  require_native_events(on);
  event_ = on.event_create();
}

native_event::~native_event() { on_.ops().event_destroy(event_); }

bool native_event::happened() const {
  const sg_status status = on_.ops().event_query(event_);
  if (status == SG_STATUS_NOT_READY) return false;
  on_.check(status, "asking for a native event");
  return true;
}

}  // namespace sg
