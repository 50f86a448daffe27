// SPDX-License-Identifier: Apache-2.0
// A device as an engine's runs use it: backend calls, events, and the lanes of runs over several devices.
#pragma once

#include <memory>
#include <vector>

#include "devices/device.hpp"
#include "run/dispatch/launcher.hpp"
#include "run/dispatch/spread_lanes.hpp"

namespace sg {

// Used by one thread at a time.
class run_device {
 public:
  explicit run_device(const device &on) noexcept : on_(on), launch_(on) {}
  ~run_device();  // nothing is in flight
  run_device(const run_device &) = delete;
  run_device &operator=(const run_device &) = delete;

  const device &on() const noexcept { return on_; }
  launcher &launch() noexcept { return launch_; }
  // Made by the first call, with at least so many compute lanes. Throws sg::error, std::bad_alloc.
  void open_lanes(device_index index, std::uint32_t compute);
  spread_lanes &lanes() noexcept { return *lanes_; }

  // An event that is recorded behind the stream's present commands. Throws sg::error, std::bad_alloc.
  sg_backend_event *record(sg_backend_stream *in);
  void release(sg_backend_event *event) noexcept;

 private:
  const device &on_;
  launcher launch_;
  std::unique_ptr<spread_lanes> lanes_;
  std::vector<sg_backend_event *> events_;  // unused
};

}  // namespace sg
