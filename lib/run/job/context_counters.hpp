// SPDX-License-Identifier: Apache-2.0
// Counters of a context, and the OpenMetrics text of those of several.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sg {

// By lane kind: copy in, copy out, compute.
inline constexpr std::size_t counted_lanes = 3;

struct context_counters {
  std::uint64_t number = 0;  // of the context
  std::string device;
  std::uint64_t submitted = 0, in_flight = 0, succeeded = 0, failed = 0, cancelled = 0;  // jobs
  std::array<std::uint64_t, 3> queued{};                                                 // jobs, by priority, low first
  struct lane {
    std::uint64_t commands = 0, bytes = 0;
    std::int64_t busy_ns = 0;
  };
  using lane_counters = std::array<lane, counted_lanes>;
  lane_counters lanes{};
  std::int64_t elapsed_ns = 0;
  std::uint64_t device_bytes = 0, pinned_bytes = 0;

  // Of a context with several devices each one's part of the sums above.
  struct part {
    std::string device;
    lane_counters lanes{};
    std::uint64_t device_bytes = 0;
  };
  std::vector<part> parts;
};

std::string open_metrics_text(std::span<const context_counters> all);

}  // namespace sg
