// SPDX-License-Identifier: Apache-2.0
// The history of a recording: what ran when, on tracks. Exporters and metrics read nothing else.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ops/command.hpp"
#include "trace/recording.hpp"

namespace sg::trace {

enum class track_kind : std::uint8_t { device_lane, thread };

// One line of a timeline: a lane of a device, or a thread.
struct track {
  std::string name;
  track_kind kind = track_kind::device_lane;
  std::size_t context = 0;  // index in history::contexts; of a thread: no_context
  sg::lane_kind lane = sg::lane_kind::compute;
};
inline constexpr std::size_t no_context = SIZE_MAX;

// What a track did from `start_ns` to `end_ns`, since the recording's start.
struct activity {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t track = 0;
  event_kind kind = event_kind::command;
  std::uint8_t operation = 0;  // of commands and staging
  std::size_t context = no_context;
  std::uint64_t job = 0;    // 0: none
  std::uint64_t bytes = 0;  // that a command moved
  std::uint32_t m = 0, n = 0, k = 0;
  std::uint32_t count = 1;  // GEMMs of the batch

  std::string name() const;
};

// A job, as far as the recording saw it; a time is -1 where it did not.
struct traced_job {
  std::uint64_t number = 0;
  std::size_t context = no_context;
  std::string label;
  std::uint64_t trace_id = 0;                                      // of the application's request; 0: none
  std::int64_t stream = -1;                                        // its number; -1: none
  std::int64_t submitted_ns = -1, started_ns = -1, ended_ns = -1;  // the two latter on the device's clock
  std::int64_t completed_ns = -1;                                  // on the host
  std::uint32_t status = 0, batch_size = 1;
  std::int32_t priority = 0;  // -1, 0, 1

  std::string title() const;  // its label and its trace_id: "layer 3, trace id 7"; "": it has neither
};

struct sample {
  std::int64_t at_ns = 0;
  double value = 0;
};

struct counter {
  std::string name, unit;
  std::size_t context = 0;
  std::vector<sample> samples;
};

struct traced_context {
  std::uint32_t number = 0;
  std::string device;
  // Times of its lanes are virtual, and begin with its first command. They are not to be compared with those of
  // threads.
  bool is_virtual = false;
  std::string processor;  // that computes, of a device whose lanes are its cores; "": not known, or another device
};

// Something to change, and what it would gain.
struct advice {
  std::string title, evidence;
  double gain_seconds = 0;  // of the jobs that the evidence names, by the device's model
};

struct history {
  std::int64_t span_ns = 0;  // of the recording
  std::uint64_t dropped = 0;
  std::vector<traced_context> contexts;
  std::vector<track> tracks;         // lanes of each context, then threads
  std::vector<activity> activities;  // by track, then by start
  std::vector<traced_job> jobs;      // by number
  std::vector<counter> counters;
  std::vector<advice> advices;  // for the exports; see advice_of()
  // Of a schedule that has not run: names and values of its prediction. Empty: the history was recorded.
  std::vector<std::pair<std::string, std::string>> prediction;

  std::span<const activity> of_track(std::size_t index) const noexcept;
  const traced_job *job(std::uint64_t number) const noexcept;  // nullptr: not seen
};

history history_of(const recording &from);

// The simulated timelines of the schedules that were recorded, each from the start of its job; `measured`: the
// recording's.
history predicted_history_of(const recording &from, const history &measured);

// The simulated timeline of a schedule, as the history of one job, with its prediction and advice.
history history_of_plan(const recorded_schedule &planned);

// The processor of this machine, as Linux names it; "": it does not, as on ARM.
const std::string &processor_name();

// What an operation's number stands for: "gemm", "copy in", "graph".
const char *name_of_operation(std::uint8_t operation) noexcept;
std::string bytes_text(std::uint64_t bytes);  // "4.2 MB"
std::string ns_text(std::int64_t ns);         // "12.5 us"

}  // namespace sg::trace
