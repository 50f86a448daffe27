// SPDX-License-Identifier: Apache-2.0
// One run of a schedule of several commands: which have gone out, which have ended, and which may go next.
#pragma once

#include <streamgemm/backend.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "run/program/inflight_command.hpp"
#include "run/program/program.hpp"

namespace sg {

class run_pool;

class program_run {
 public:
  program_run(std::shared_ptr<const sg::program> compiled, run_pool &pool);  // Throws std::bad_alloc.
  // As it was when it was made. It is over.
  void begin_again() noexcept;

  const sg::program &of() const noexcept { return *program_; }
  run_pool &pool() const noexcept { return pool_; }

  enum class command_state : std::uint8_t { waiting, enqueued, completed };

  struct lane_progress {
    std::uint32_t next = 0;  // position in program::lanes[i].commands
    bool busy = false;       // a command of the lane is in flight
    bool started = false;    // a command of the lane has gone out
    bool held_up = false;    // for engine::advance(): the next command cannot go out now
  };

  // The command goes out. Its lane's next one is the first that has not; commands go out before it only if loose.
  void goes_out(std::uint32_t command) noexcept {
    states[command] = command_state::enqueued;
    lane_progress &lane = lanes[lane_of[command]];
    const auto &list = program_->lanes[lane_of[command]].commands;
    while (lane.next < list.size() && states[list[lane.next]] != command_state::waiting) ++lane.next;
    lane.busy = true;
  }
  bool idle() const noexcept { return in_flight == 0; }
  bool complete() const noexcept { return completed_count == states.size(); }

  std::vector<command_state> states;             // by command
  std::vector<lane_progress> lanes;              // by program::lanes
  std::vector<std::uint32_t> lane_of;            // by command of the device: its lane in program::lanes
  std::vector<std::uint32_t> blockers;           // by command of host workers: what it waits for that has not ended
  std::vector<std::uint32_t> stageable;          // commands of host workers that may go out
  std::unique_ptr<inflight_command[]> inflight;  // by command: of this run once it has gone out
  std::vector<lane_slot *> slots;                // by command: the backend stream that it went to
  std::vector<sg_backend_event *> events;        // by command; nullptr where none is needed
  std::size_t completed_count = 0;
  bool unbatched = false;  // a batch was refused: its GEMMs go out one by one, which shows the failing one
  std::int32_t in_flight = 0;

 private:
  const std::shared_ptr<const sg::program> program_;             // a program refers to no run
  run_pool &pool_;                                               // outlives it
  std::vector<std::uint32_t> first_blockers_, first_stageable_;  // before anything has gone out
};

}  // namespace sg
