// SPDX-License-Identifier: Apache-2.0
// A native event of the device, which the application's own streams can wait for: wrapped, or made for the application.
#pragma once

#include "devices/device.hpp"

namespace sg {

class native_event {
 public:
  // Both throw sg::error(SG_STATUS_UNSUPPORTED) if the device has no native events. A wrapped one stays the caller's.
  native_event(const device &on, void *native);
  explicit native_event(const device &on);
  ~native_event();
  native_event(const native_event &) = delete;
  native_event &operator=(const native_event &) = delete;

  sg_backend_event *get() const noexcept { return event_; }
  void *address() const noexcept { return on_.ops().event_native(event_); }
  bool happened() const;  // as last recorded by any code. Throws sg::error.

 private:
  const device &on_;
  sg_backend_event *event_ = nullptr;
};

}  // namespace sg
