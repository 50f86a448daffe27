// SPDX-License-Identifier: Apache-2.0
// An event of the device's own, which the program's streams can wait for: the caller's, or made to be given out.
#pragma once

#include "backend/device.hpp"

namespace sg {

class native_event {
 public:
  // Both throw sg::error(SG_STATUS_UNSUPPORTED) where the device has none. The first stays the caller's.
  native_event(const device &on, void *native);
  explicit native_event(const device &on);
  ~native_event();
  native_event(const native_event &) = delete;
  native_event &operator=(const native_event &) = delete;

  sg_backend_event *get() const noexcept { return event_; }
  void *address() const noexcept { return on_.ops().event_native(event_); }
  bool happened() const;  // as it was last recorded, by whomever. Throws sg::error.

 private:
  const device &on_;
  sg_backend_event *event_ = nullptr;
};

}  // namespace sg
