// SPDX-License-Identifier: Apache-2.0
// Records events while a recording is on: each thread into a ring of its own, without a lock and without allocating. A
// collector thread empties the rings. A full ring drops events and counts them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/futex.hpp"
#include "trace/event.hpp"
#include "trace/recording.hpp"

namespace sg::trace {

extern std::atomic<std::uint8_t> g_recording;
inline constexpr std::uint8_t into_rings = 1, into_profiler = 2;  // its bits

// By a recording or a profiler. One relaxed load and a branch where nothing is recorded. Call it before an event is
// prepared.
inline bool recording_is_on() noexcept { return g_recording.load(std::memory_order_relaxed) != 0; }
inline bool profiler_is_on() noexcept { return (g_recording.load(std::memory_order_relaxed) & into_profiler) != 0; }

// A number for a job, which no other job of the process has; 0 where there is no memory for the thread's ring.
std::uint64_t new_job_number() noexcept;

// Writes an event into the ring of the calling thread. Never blocks.
void record(const event &happened) noexcept;

// A text of an event, in as many events as it takes, two at most.
void record_text(event_kind kind, std::uint64_t context, std::uint64_t job, const char *text,
                 std::uint8_t detail = 0) noexcept;

// The model of a context's machine.
void note_machine(std::uint64_t context, const machine_model &model) noexcept;

// The schedule that a job runs, and what it was planned for. Of the first `most_schedules` jobs of a recording, in
// contexts whose machines are noted.
inline constexpr std::size_t most_schedules = 1024;
void note_schedule(std::uint64_t job, std::uint64_t context, const std::shared_ptr<const schedule> &runs,
                   const std::shared_ptr<const form> &what, const plan_request &request) noexcept;

// Records an event of the time in which it exists.
class timed_event {
 public:
  // `wanted`: false records nothing.
  explicit timed_event(event_kind kind, std::uint64_t context, bool wanted = true) noexcept : kind_(kind) {
    if (recording_is_on() && wanted) [[unlikely]]
      begin(context);
  }
  ~timed_event() {
    if (start_ns_ != 0) [[unlikely]]
      finish();
  }
  timed_event(const timed_event &) = delete;
  timed_event &operator=(const timed_event &) = delete;

  bool is_on() const noexcept { return start_ns_ != 0; }
  // Of one that is on. `count`, `detail`: see event.
  void concerns(std::uint64_t job, std::uint32_t count = 0, std::uint8_t detail = 0) noexcept {
    job_ = job;
    count_ = count;
    detail_ = detail;
  }

 private:
  void begin(std::uint64_t context) noexcept;
  void finish() const noexcept;

  const event_kind kind_;
  std::int64_t start_ns_ = 0;
  std::uint64_t context_, job_;  // what follows is set by begin()
  std::uint32_t count_;
  std::uint8_t detail_;
  bool in_profiler_;
};

inline constexpr std::uint64_t default_events = 1'000'000;

// Begins a recording that keeps `most_events` at most; throws sg::error(SG_STATUS_BUSY) while there is one, or
// SG_STATUS_OUT_OF_MEMORY. Ends it, and returns what was recorded; nullptr where none was on, or in a forked child.
// `device_times`: devices are to time each command.
void start_recording(std::uint64_t most_events, bool device_times = false);
bool wants_device_times() noexcept;  // the recording that is on
std::shared_ptr<recording> stop_recording() noexcept;

// Records for a profiler from now on, if one listens.
void start_for_profiler() noexcept;

// In the child of a fork, where the collector is gone.
void forget_recording() noexcept;

}  // namespace sg::trace
