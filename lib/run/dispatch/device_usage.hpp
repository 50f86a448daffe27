// SPDX-License-Identifier: Apache-2.0
// Counters of what a device has run, and of the jobs that wait for it. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "ops/command.hpp"
#include "run/job/context_counters.hpp"

namespace sg {

struct inflight_command;

class device_usage {
 public:
  // `begins_at_zero`: the device's clock does, as a virtual one; otherwise a command that began at 0 was not timed.
  explicit device_usage(bool begins_at_zero) noexcept : begins_at_zero_(begins_at_zero) {}

  // A command, or a batch of a run's; what it waited for had completed at `not_before_ns`.
  void count_command(const inflight_command &f, std::int64_t not_before_ns) noexcept;
  void count(lane_kind where, std::int64_t start_ns, std::int64_t end_ns, std::uint64_t bytes) noexcept;
  void set_queued(std::size_t priority, std::size_t jobs) noexcept {
    if (queued_[priority].load(std::memory_order_relaxed) != jobs)
      queued_[priority].store(jobs, std::memory_order_relaxed);
  }

  context_counters::lane_counters lanes() const noexcept;
  std::size_t queued(std::size_t priority) const noexcept { return queued_[priority].load(std::memory_order_relaxed); }
  std::int64_t latest_end_ns() const noexcept;  // of a counted command, on the device's clock

 private:
  struct alignas(64) lane {
    struct gap {
      std::int64_t start_ns = 0, end_ns = 0;
    };
    std::atomic<std::int64_t> latest_end_ns{0}, busy_ns{0};  // written under the lock
    std::atomic<std::uint64_t> commands{0}, bytes{0};
    std::mutex lock;
    std::array<gap, 16> gaps;  // the longest idle times before latest_end_ns

    // The part of that time in which no counted command of the lane ran.
    std::int64_t fresh_ns(std::int64_t start_ns, std::int64_t end_ns) noexcept;
    void remember(const gap &idle) noexcept;
  };
  const bool begins_at_zero_;
  std::array<lane, counted_lanes> lanes_;
  std::array<std::atomic<std::uint64_t>, 3> queued_{};
};

}  // namespace sg
