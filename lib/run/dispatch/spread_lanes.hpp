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
  ~spread_lanes();                                     // no run's command is in flight
  spread_lanes(const spread_lanes &) = delete;
  spread_lanes &operator=(const spread_lanes &) = delete;

  // Makes room for compute lanes 0, ..., count - 1. Throws sg::error, std::bad_alloc.
  void reserve(std::uint32_t count);
  // The lane of a schedule's command; nullptr: it is full. With more commands the driver's calls would block.
  lane_slot *find(lane where) noexcept;
  // Another lane takes its place for commands to come; those in flight, whose runs know it, keep it. Once they have
  // completed it may take the place back. If no other lane can be made, it stays.
  void replace(const lane_slot &old) noexcept;
  // Whether the copies in that are in flight end before the host can add some.
  bool copies_in_run_dry() const noexcept;

  // Lanes of these have larger numbers than the bits of job::behind(): no job follows another there.
  static constexpr std::uint32_t first_number = 8 * sizeof(lane_bits);

 private:
  using lane_list = std::vector<std::unique_ptr<lane_slot>>;
  std::unique_ptr<lane_slot> make(std::uint32_t number) const;
  std::unique_ptr<lane_slot> take_replaced(std::uint32_t number) noexcept;
  bool mark_end(lane_slot &of) const noexcept;

  const device &device_;
  const device_index index_;
  lane_list copies_;    // in, out, from peers
  lane_list compute_;   // made on demand
  lane_list replaced_;  // of runs that a lost device has failed; a marker is behind their commands
  lane_list unusable_;  // replaced, and take no marker
};

}  // namespace sg
