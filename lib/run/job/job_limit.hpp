// SPDX-License-Identifier: Apache-2.0
// Limit of jobs in flight of a context. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/error.hpp"
#include "base/futex.hpp"

namespace sg {

bool in_function_of_job() noexcept;  // service.hpp

class job_limit {
 public:
  // `most`: 0: no limit. `refuses`: at the limit enter() throws; otherwise it waits.
  job_limit(std::int64_t most, bool refuses) noexcept : most_(most), refuses_(refuses) {}

  // True: the job is counted, and leave() must follow its completion; false: no limit. Throws
  // sg::error(SG_STATUS_BUSY).
  bool enter() {
    if (most_ == 0) return false;
    if (!try_enter()) {
      if (refuses_)
        throw error(SG_STATUS_BUSY, "%lld jobs are in flight, the context's limit", static_cast<long long>(most_));
      if (in_function_of_job())
        throw error(SG_STATUS_DEADLOCK,
                    "a function of a custom operation would wait: %lld jobs are in flight, the limit",
                    static_cast<long long>(most_));
      waiting_.fetch_add(1);
      for (;;) {
        const std::uint32_t seen = room_made_.load();
        if (try_enter()) break;
        futex_wait(room_made_, seen, deadline(-1));
      }
      waiting_.fetch_sub(1);
    }
    return true;
  }
  void leave() noexcept {
    inside_.fetch_sub(1);
    if (waiting_.load() == 0) return;
    room_made_.fetch_add(1);
    futex_wake_all(room_made_);
  }

 private:
  bool try_enter() noexcept {
    for (std::int64_t now = inside_.load(); now < most_;)
      if (inside_.compare_exchange_weak(now, now + 1)) return true;
    return false;
  }

  const std::int64_t most_;
  const bool refuses_;
  std::atomic<std::int64_t> inside_{0};
  std::atomic<std::uint32_t> room_made_{0};  // a futex
  std::atomic<std::uint32_t> waiting_{0};
};

}  // namespace sg
