// SPDX-License-Identifier: Apache-2.0
// Lanes on one device for runs over several devices, which no other commands use. The engine that advances such a run
// issues its commands on all devices, so each device has streams that only this engine uses.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "devices/device.hpp"
#include "ops/command.hpp"
#include "run/program/inflight_command.hpp"

namespace sg {

class spread_lanes {
 public:
  spread_lanes(const device &on, device_index index);  // Throws sg::error, std::bad_alloc.
  ~spread_lanes();                                     // nothing is in flight
  spread_lanes(const spread_lanes &) = delete;
  spread_lanes &operator=(const spread_lanes &) = delete;

  // Makes room for compute lanes 0, ..., count - 1. Throws sg::error, std::bad_alloc.
  void reserve(std::uint32_t count);
  // The lane of a schedule's command; nullptr: it is full. With more commands the driver's calls would block.
  lane_slot *find(lane where) noexcept;
  // Whether the copies in that are in flight end before the host can add some.
  bool copies_in_run_dry() const noexcept;

  // Lanes of these have larger numbers than the bits of job::behind(): no job follows another there.
  static constexpr std::uint32_t first_number = 8 * sizeof(lane_bits);

 private:
  const device &device_;
  const device_index index_;
  std::vector<std::unique_ptr<lane_slot>> copies_;   // in, out, from peers
  std::vector<std::unique_ptr<lane_slot>> compute_;  // made on demand
};

}  // namespace sg
