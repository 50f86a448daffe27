// SPDX-License-Identifier: Apache-2.0
// A lane of the engine's that is used when somebody names it: over a stream of the caller's, where what is submitted
// goes between the caller's own work; for events of the device's own; or on compute units that are set aside.
#pragma once

#include "run/dispatch/engine.hpp"
#include "run/program/inflight_command.hpp"

namespace sg {

class dedicated_lane {
 public:
  // The native stream stays the caller's. Throws sg::error(SG_STATUS_UNSUPPORTED) where the device has none.
  dedicated_lane(const device &on, engine &in, void *native);
  dedicated_lane(const device &on, engine &in);  // for events. Throws sg::error.
  // On units that are set aside, `units` of them at most, which becomes how many. Throws
  // sg::error(SG_STATUS_UNSUPPORTED) where there are none.
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
