// SPDX-License-Identifier: Apache-2.0
// Jobs in flight, counted by epoch. Synchronizing waits for the epochs so far and not for later submissions, and the
// tracker knows without reading job records that all jobs of the oldest epochs have completed.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/futex.hpp"

namespace sg {

// Guarded by the context's submission lock, except for functions marked "any thread".
class epochs {
 public:
  std::uint32_t present() const noexcept { return present_; }
  // Jobs in flight.
  std::int64_t count() const noexcept;
  std::int64_t total() const noexcept;  // jobs that have been counted in
  // Counts another job and returns its epoch.
  std::uint32_t count_in() noexcept;
  // `count` jobs have completed. Any thread.
  void completed(std::uint32_t epoch, std::int64_t count) noexcept;
  // Opens the next epoch for later jobs. False: all counters are in use.
  bool open_next() noexcept;
  // The oldest epoch with jobs in flight; the present one when none has.
  std::uint32_t oldest() noexcept;
  // Whether all jobs of that epoch and of earlier ones have completed.
  bool completed_up_to(std::uint32_t epoch) noexcept;

  // Event count: read the sequence, test, sleep while it is unchanged. A false test is followed by a wake-up, which may
  // be meant for another thread, so test again.
  std::uint32_t wakings() const noexcept { return wakings_.load(); }
  // True when later jobs belong to a later epoch, which this call or another thread has opened.
  bool watch_closed(std::uint32_t epoch) noexcept;
  bool watch_completed_up_to(std::uint32_t epoch) noexcept;
  // Any thread.
  void sleep(std::uint32_t wakings, const deadline &until) const noexcept { futex_wait(wakings_, wakings, until); }

 private:
  static constexpr std::int64_t no_waiter = INT64_MAX;
  static constexpr std::uint32_t ring_size = 64, most_jobs = 128;  // jobs of an epoch before the next is opened

  struct alignas(64) completions {
    std::atomic<std::int64_t> count{0};
    std::atomic<std::int64_t> awaited{no_waiter};  // the count that a thread sleeps for
  };

  bool none_in_flight(std::uint32_t epoch) const noexcept {
    return begun_[epoch % ring_size] == completed_[epoch % ring_size].count.load();
  }
  bool watch_none_in_flight(std::uint32_t epoch) noexcept;

  std::uint32_t present_ = 0, oldest_ = 0, counted_ = 0;
  // In flight: begun and not completed. Submitters count in plain numbers, so that they write no cache line that
  // completions write.
  std::int64_t begun_[ring_size] = {};
  completions completed_[ring_size];
  alignas(64) std::atomic<std::uint32_t> wakings_{0};  // a futex
};

}  // namespace sg
