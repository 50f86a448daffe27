// SPDX-License-Identifier: Apache-2.0
// A lane of the engine that only commands naming it use: over a native stream of the caller, where submissions are
// ordered with the caller's own work; for native events; or on reserved compute units.
#pragma once

#include "run/dispatch/engine.hpp"
#include "run/program/inflight_command.hpp"

namespace sg {

class dedicated_lane {
 public:
  // The native stream stays the caller's. Throws sg::error(SG_STATUS_UNSUPPORTED) if the device has no native streams.
  dedicated_lane(const device &on, engine &in, void *native);
  dedicated_lane(const device &on, engine &in);  // for events. Throws sg::error.
  // On reserved compute units, at most `units`, which is set to their number. Throws sg::error(SG_STATUS_UNSUPPORTED)
  // if none can be reserved.
  dedicated_lane(const device &on, engine &in, std::int32_t priority, std::int32_t &units);
  ~dedicated_lane();  // nothing of it is in flight
  dedicated_lane(const dedicated_lane &) = delete;
  dedicated_lane &operator=(const dedicated_lane &) = delete;

  lane_slot &slot() noexcept { return slot_; }

 private:
  void admit();
  void destroy() noexcept;

  const device &device_;
  engine &engine_;
  lane_slot slot_;
};

}  // namespace sg
