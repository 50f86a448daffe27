// SPDX-License-Identifier: Apache-2.0
// Lanes for waits on native events and for recording them, made on demand. Several, because a wait delays the commands
// behind it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "run/program/inflight_command.hpp"

namespace sg {

class device;
class engine;
class dedicated_lane;

class event_lanes {
 public:
  event_lanes(const device &on, engine &in) noexcept;
  ~event_lanes();  // nothing of them is in flight
  event_lanes(const event_lanes &) = delete;
  event_lanes &operator=(const event_lanes &) = delete;

  lane_slot &least_busy();  // Throws sg::error, std::bad_alloc. Any thread.

 private:
  const device &device_;
  engine &engine_;
  std::mutex lock_;
  std::vector<std::unique_ptr<dedicated_lane>> lanes_;
};

}  // namespace sg
