// SPDX-License-Identifier: Apache-2.0
// A lane of the engine's that is used when somebody names it: over a stream of the caller's, where what is submitted
// goes between the caller's own work, or for events of the device's own.
#pragma once

#include "run/context.hpp"
#include "run/flight.hpp"

namespace sg {

class native_lane {
 public:
  // The native stream stays the caller's. Throws sg::error(SG_STATUS_UNSUPPORTED) where the device has none.
  native_lane(context &on, void *native);
  explicit native_lane(context &on);  // for events. Throws sg::error.
  ~native_lane();                     // nothing of it is in flight
  native_lane(const native_lane &) = delete;
  native_lane &operator=(const native_lane &) = delete;

  lane_slot &slot() noexcept { return slot_; }

 private:
  void admit();
  void destroy() noexcept;

  context &on_;
  lane_slot slot_;
};

}  // namespace sg
