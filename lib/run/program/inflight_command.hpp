// SPDX-License-Identifier: Apache-2.0
// A command between its backend call, or its staging worker, and its completion.
#pragma once

#include <streamgemm/backend.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "base/device_index.hpp"

namespace sg {

class engine;
class job;
struct batch;

// A bit for each lane of an engine.
using lane_bits = std::uint64_t;
inline lane_bits bit_of_lane(std::uint32_t index) noexcept { return lane_bits{1} << index; }

// Which commands of the two lanes of stand-alone copies, to the device and from it, are to be followed: up to that mark
// of the lane; 0: none, `all_present`: all that are in the lane then.
struct copy_marks {
  static constexpr std::uint64_t all_present = UINT64_MAX;
  std::uint64_t in = 0, out = 0;
  static constexpr copy_marks all() noexcept { return {all_present, all_present}; }
};

// Use of a lane: shared by all commands, or dedicated to commands that name it.
enum class lane_use : std::uint8_t {
  any,
  native,     // a native stream of the caller
  events,     // marker events
  partition,  // GEMMs, on reserved compute units
};

// One of the engine's backend streams.
struct lane_slot {
  sg_backend_stream *stream = nullptr;
  sg_backend_event *tail = nullptr;  // for waits of other lanes on this one; with device_ordered()
  std::uint32_t index = 0;           // its bit in job::behind(), among the lanes of its device
  device_index device{};             // of the machine
  lane_use use = lane_use::any;
  std::atomic<std::int32_t> in_flight{0};  // commands
  std::atomic<std::int32_t> of_runs{0};    // of these, commands of schedules' runs
  std::atomic<bool> has_retired{false};    // the stream was given up, and the buffers that existed then are retired
  // Expected duration of the commands in flight, and when the first of them began, on CLOCK_MONOTONIC.
  std::atomic<std::int64_t> begun_ns{0}, predicted_ns{0};
  // A lane of stand-alone copies: events behind its latest long ones, in turn; a lane never holds as many commands.
  static constexpr std::size_t most_marks = 16;
  std::array<sg_backend_event *, most_marks> marks{};
  std::uint64_t marked = 0;  // so many were recorded
};

struct inflight_command {
  inflight_command *next = nullptr;  // in the engine's list of completed commands, or a stager's queue
  engine *home = nullptr;            // notified of its completion
  job *owner = nullptr;
  std::uint32_t index = 0;                     // command of the schedule
  sg::batch *batch = nullptr;                  // if several commands were sent in one call
  std::int32_t commands = 1;                   // in that call
  lane_slot *lane = nullptr;                   // nullptr on a staging worker
  float share = 0;                             // share of the device that it fills
  std::int64_t predicted_ns = 0;               // of a stand-alone command; for a batch its first member's
  std::int32_t batch_size = 1;                 // GEMMs in the call
  std::atomic<std::int32_t> backend_calls{0};  // not completed yet
  std::int64_t start_ns = 0, end_ns = 0;
  bool is_skipped = false;  // by its staging worker, because the job had failed

  void begin(engine *runner, job &of, std::uint32_t command, lane_slot *where, std::int32_t calls) noexcept {
    home = runner;
    owner = &of;
    index = command;
    batch = nullptr;
    commands = 1;
    lane = where;
    share = 0;
    predicted_ns = 0;
    batch_size = 1;
    start_ns = end_ns = 0;
    is_skipped = false;
    backend_calls.store(calls, std::memory_order_relaxed);
  }
};

}  // namespace sg
