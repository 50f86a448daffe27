// SPDX-License-Identifier: Apache-2.0
// A stream of the caller's as one of the engine's lanes: what is submitted to it goes between the caller's own work there.
#pragma once

#include "run/context.hpp"
#include "run/flight.hpp"

namespace sg {

class native_lane {
 public:
  // The native stream stays the caller's. Throws sg::error(SG_STATUS_UNSUPPORTED) where the device has none.
  native_lane(context &on, void *native);
  ~native_lane();  // nothing of it is in flight
  native_lane(const native_lane &) = delete;
  native_lane &operator=(const native_lane &) = delete;

  lane_slot &slot() noexcept { return slot_; }

 private:
  void destroy() noexcept;

  context &on_;
  lane_slot slot_;
};

}  // namespace sg
