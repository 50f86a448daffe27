// SPDX-License-Identifier: Apache-2.0
// Figures of a history: how busy a device was, how much of its transfers was hidden, and why it was idle.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trace/history.hpp"
#include "trace/interval_set.hpp"

namespace sg::trace {

// Why no compute lane of a device worked.
enum class idle_cause : std::uint8_t {
  link,        // a copy was under way
  staging,     // a staging worker packed or unpacked
  submission,  // a call was submitting or planning
  dispatch,    // jobs were in flight, and the library or the device had not begun their next command
  no_work,     // no job was in flight
};
inline constexpr std::size_t idle_causes = 5;
const char *name_of(idle_cause cause) noexcept;

// A time in which no compute lane worked, all of it for one cause.
struct idle_gap {
  std::int64_t start_ns = 0, end_ns = 0;
  idle_cause cause = idle_cause::no_work;
};
inline constexpr std::size_t most_gaps = 20;

struct latency {
  std::int64_t p50_ns = 0, p90_ns = 0, p99_ns = 0, max_ns = 0;
};

// Of one context. Times of lanes of one kind are those in which at least one of them worked, so that busy and idle
// together are the span.
struct context_metrics {
  std::int64_t start_ns = 0, span_ns = 0;  // from its first command to the end of its last
  std::int64_t busy_ns = 0;                // any lane
  std::int64_t compute_ns = 0, copy_in_ns = 0, copy_out_ns = 0, staging_ns = 0;
  std::int64_t command_ns = 0;   // the times of all commands, added
  std::int64_t transfer_ns = 0;  // copies both ways
  std::int64_t exposed_ns = 0;   // of these, while no compute lane worked
  std::uint64_t bytes_in = 0, bytes_out = 0;
  std::uint64_t commands = 0, jobs = 0, failed_jobs = 0;
  std::array<std::int64_t, idle_causes> idle_ns{};  // of the compute lanes; their sum is span_ns - compute_ns
  std::vector<idle_gap> gaps;                       // the longest ones, the longest first
  latency of_jobs;                                  // from submission to completion

  // The share of the transfers that was hidden behind arithmetic; 1 where nothing was transferred.
  double overlap_efficiency() const noexcept;
  double parallelism() const noexcept;  // command_ns / span_ns
};

// `context`: an index of history::contexts. `stream`: of that stream's jobs only; -1: of all.
context_metrics metrics_of_context(const history &from, std::size_t context, std::int64_t stream = -1);
std::vector<context_metrics> metrics_of(const history &from);  // by context

// The time in which commands of both ran. The jobs are numbers, the streams too.
std::int64_t overlap_of_jobs_ns(const history &from, std::uint64_t first, std::uint64_t second);
std::int64_t overlap_of_streams_ns(const history &from, std::int64_t first, std::int64_t second);

}  // namespace sg::trace
