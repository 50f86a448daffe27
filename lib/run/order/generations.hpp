// SPDX-License-Identifier: Apache-2.0
// Jobs in flight, counted by generation: who waits for all that was submitted waits for what was there and not for what
// comes, and the tracker knows without a look at them that all jobs of the oldest generations have ended.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/futex.hpp"

namespace sg {

// Not thread-safe but for what says so: the context's submission lock covers the rest.
class generations {
 public:
  std::uint32_t present() const noexcept { return present_; }
  // Jobs in flight.
  std::int64_t count() const noexcept;
  // Counts one job more; its generation.
  std::uint32_t count_in() noexcept;
  // Jobs have ended. Any thread.
  void ended(std::uint32_t generation, std::int64_t count) noexcept;
  // Lets what comes belong to another generation. False: all counters are in use.
  bool open_next() noexcept;
  // That has jobs in flight; the present one when none has.
  std::uint32_t oldest() noexcept;
  // Whether all jobs of that one, and of those before it, have ended.
  bool ended_up_to(std::uint32_t generation) noexcept;

  // To sleep until something is so: take the count of wakings, ask, and sleep while the count is the same; a waking
  // follows a false answer. It may be another thread's, so whoever wakes asks again.
  std::uint32_t wakings() const noexcept { return wakings_.load(); }
  // What comes belongs to a later generation than that one: which another may have opened, and otherwise this does.
  bool watch_closed(std::uint32_t generation) noexcept;
  bool watch_ended_up_to(std::uint32_t generation) noexcept;
  // Any thread.
  void sleep(std::uint32_t wakings, const deadline &until) const noexcept { futex_wait(wakings_, wakings, until); }

 private:
  static constexpr std::int64_t nobody = INT64_MAX;
  static constexpr std::uint32_t places = 64, most_jobs = 128;  // of a generation, before the next is opened

  struct alignas(64) ends {
    std::atomic<std::int64_t> count{0};
    std::atomic<std::int64_t> awaited{nobody};  // the count that somebody sleeps for
  };

  bool none_in_flight(std::uint32_t generation) const noexcept {
    return begun_[generation % places] == ended_[generation % places].count.load();
  }
  bool watch_none_in_flight(std::uint32_t generation) noexcept;

  std::uint32_t present_ = 0, oldest_ = 0, counted_ = 0;
  // What is in flight is what has begun and has not ended. Who submits counts in plain numbers of its own, and writes
  // no cache line that those write whose jobs end.
  std::int64_t begun_[places] = {};
  ends ended_[places];
  alignas(64) std::atomic<std::uint32_t> wakings_{0};  // a futex
};

}  // namespace sg
