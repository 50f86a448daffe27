// SPDX-License-Identifier: Apache-2.0
// An event of a trace: 64 bytes, written by the thread on which it happened.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sg::trace {

enum class event_kind : std::uint8_t {
  context,     // a context and its device: text, in two events where it is long
  label,       // the label of a job: text, in two events where it is long
  submission,  // the call that submitted a job
  planning,    // a program was planned, because no cache had it
  command,     // a command ran in a lane of the device, or on the submitting thread
  staging,     // a command of a staging worker ran
  wait,        // a thread waited for a job, for several, or for the context (job 0)
  completion,  // a job completed
  replan,      // a run was planned again for less device memory
  memory,      // a context's arenas grew or shrank: value in bytes, lane 0 device memory, 1 pinned memory
  trace_id,    // the application's request that a job serves: value
};

inline constexpr std::uint16_t no_lane = 0xffff;
// A lane of one of a context's devices, as one number. From 15 devices on their lanes share numbers.
constexpr std::uint16_t lane_of(std::size_t device, std::uint32_t lane) noexcept {
  return static_cast<std::uint16_t>(device % 15 << 12 | (lane & 0xfff));
}
constexpr unsigned device_of_lane(std::uint16_t lane) noexcept { return lane >> 12; }
constexpr unsigned number_in_device(std::uint16_t lane) noexcept { return lane & 0xfff; }
inline constexpr std::uint8_t virtual_clock_bit = 2;
inline constexpr std::size_t event_text_size = 48;

// Times are in ns: of commands and completions on the device's clock, of all else on CLOCK_MONOTONIC.
struct event_body {
  std::int64_t start_ns, end_ns;
  std::uint64_t value;     // command: bytes moved; completion: CLOCK_MONOTONIC; memory: bytes; trace_id: it
  std::uint32_t m, n, k;   // command: sizes of a GEMM, otherwise 0
  std::uint32_t index;     // command: in its schedule; completion: the status
  std::uint32_t count;     // command: GEMMs of the batch; completion: jobs of its batch; submission: stream + 1
  std::uint16_t lane;      // lane_of(); no_lane: the thread
  std::uint8_t operation;  // of a command: the index of its payload (ops/command.hpp)
  std::uint8_t lane_kind;  // of a command
};

struct event {
  std::uint64_t job = 0;      // 0: none
  std::uint32_t context = 0;  // its number
  std::uint16_t thread = 0;   // set by record()
  event_kind kind = event_kind::command;
  std::uint8_t detail = 0;  // texts: bit 0 is the part; of a context's, virtual_clock_bit;
                            // submission: the priority + 1
  union {
    event_body body;
    char text[event_text_size];  // filled up with NULs
  };

  event() noexcept : body{} {}
  event(event_kind what, std::uint64_t context_number, std::uint64_t of_job) noexcept
      : job(of_job), context(static_cast<std::uint32_t>(context_number)), kind(what), body{} {}
};
static_assert(sizeof(event) == 64);

}  // namespace sg::trace
