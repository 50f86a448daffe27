// SPDX-License-Identifier: Apache-2.0
// Counters of what a device has run, and of the jobs that wait for it. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "ops/command.hpp"
#include "run/job/context_counters.hpp"

namespace sg {

struct inflight_command;

class device_usage {
 public:
  void count_single(const inflight_command &f) noexcept;  // of a job of one command
  void count_of_run(const inflight_command &f) noexcept;  // of a run, or a batch of its commands
  void count(lane_kind where, std::int64_t start_ns, std::int64_t end_ns, std::uint64_t bytes) noexcept;
  void set_queued(std::size_t priority, std::size_t jobs) noexcept {
    if (queued_[priority].load(std::memory_order_relaxed) != jobs)
      queued_[priority].store(jobs, std::memory_order_relaxed);
  }

  void read(context_counters &out) const noexcept;
  std::int64_t latest_end_ns() const noexcept;  // of a counted command, on the device's clock

 private:
  struct alignas(64) lane {
    std::atomic<std::int64_t> latest_end_ns{0};  // commands that ended before it count no busy time
    std::atomic<std::int64_t> busy_ns{0};
    std::atomic<std::uint64_t> commands{0}, bytes{0};
  };
  std::array<lane, counted_lanes> lanes_;
  std::array<std::atomic<std::uint64_t>, 3> queued_{};
};

}  // namespace sg
