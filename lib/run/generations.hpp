// SPDX-License-Identifier: Apache-2.0
// Jobs in flight, counted by generation: who waits for all that was submitted waits for what was there and not for what
// comes, and the tracker knows without a look at them that all jobs of the oldest generations have ended.
#pragma once

#include <atomic>
#include <cstdint>

namespace sg {

// Not thread-safe but for ended(): the context's submission lock covers it.
class generations {
 public:
  std::uint32_t present() const noexcept { return present_; }
  // Counts one job more; its generation.
  std::uint32_t count_in() noexcept;
  // Jobs have ended. Any thread.
  void ended(std::uint32_t generation, std::int64_t count) noexcept {
    ended_[generation % places].fetch_add(count);  // in one order with job_ends' counts
  }
  // Lets what comes belong to another generation. False: all counters are in use.
  bool open_next() noexcept;
  // That has jobs in flight; the present one when none has.
  std::uint32_t oldest() noexcept;
  // Whether all jobs of that one, and of those before it, have ended.
  bool ended_up_to(std::uint32_t generation) noexcept;

 private:
  bool none_in_flight(std::uint32_t generation) const noexcept {
    return begun_[generation % places] == ended_[generation % places].load();
  }

  static constexpr std::uint32_t places = 64, most_jobs = 128;  // of a generation, before the next is opened

  std::uint32_t present_ = 0, oldest_ = 0, counted_ = 0;
  // What is in flight is what has begun and has not ended. Who submits counts in plain numbers of its own, and writes
  // no cache line that those write whose jobs end.
  std::int64_t begun_[places] = {};
  alignas(64) std::atomic<std::int64_t> ended_[places] = {};
};

}  // namespace sg
