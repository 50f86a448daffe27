// SPDX-License-Identifier: Apache-2.0
// One run of a schedule with several commands: issued, completed and startable commands.
#pragma once

#include <streamgemm/backend.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/copy.hpp"
#include "run/program/inflight_command.hpp"
#include "run/program/program.hpp"

namespace sg {

class run_pool;

class program_run {
 public:
  program_run(std::shared_ptr<const sg::program> compiled, run_pool &pool);  // Throws std::bad_alloc.
  // Resets a completed run.
  void begin_again() noexcept;

  const sg::program &of() const noexcept { return *program_; }
  run_pool &pool() const noexcept { return pool_; }

  enum class command_state : std::uint8_t { waiting, enqueued, completed };

  struct lane_progress {
    std::uint32_t next = 0;  // position in program::lanes[i].commands
    bool busy = false;       // a command of the lane is in flight
    bool started = false;    // a command of the lane has been issued
    bool held_up = false;    // for engine::advance(): the next command cannot be issued now
  };

  // Marks a command issued. A lane's next command is the first unissued one; only out-of-order copies overtake it.
  void mark_issued(std::uint32_t command) noexcept {
    states[command] = command_state::enqueued;
    lane_progress &lane = lanes[lane_of[command]];
    const auto &list = program_->lanes[lane_of[command]].commands;
    while (lane.next < list.size() && states[list[lane.next]] != command_state::waiting) ++lane.next;
    lane.busy = true;
  }
  bool idle() const noexcept { return in_flight == 0; }
  bool complete() const noexcept { return completed_count == states.size(); }
  // By copies that have been issued; from the device what has reached, or may have reached, the operands: of slots
  // what has been unpacked.
  bytes_moved moved() const noexcept;
  bool all_issued() const noexcept { return completed_count + static_cast<std::size_t>(in_flight) == states.size(); }

  std::vector<command_state> states;             // by command
  std::vector<lane_progress> lanes;              // by program::lanes
  std::vector<std::uint32_t> lane_of;            // by device command: its lane in program::lanes
  std::vector<std::uint32_t> blockers;           // by host command: number of incomplete dependencies
  std::vector<std::uint32_t> stageable;          // host commands that can be enqueued
  std::unique_ptr<inflight_command[]> inflight;  // by command: valid once issued
  std::vector<lane_slot *> slots;                // by command: its backend stream
  std::vector<sg_backend_event *> events;        // by command; nullptr: none needed
  std::size_t completed_count = 0;
  bool unbatched = false;  // a batch was refused: its GEMMs are launched one by one to find the failing one
  std::int32_t in_flight = 0;
  std::uint32_t first_lane = 0;  // the device's lane for the schedule's first one
  lane_bits used_lanes = 0;      // with commands of the run
  bool announced = false;        // its successors may follow it on the device
  bool left_lanes = false;       // later runs have others

 private:
  const std::shared_ptr<const sg::program> program_;             // a program refers to no run
  run_pool &pool_;                                               // outlives it
  std::vector<std::uint32_t> first_blockers_, first_stageable_;  // initial values
};

}  // namespace sg
