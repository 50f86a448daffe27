// SPDX-License-Identifier: Apache-2.0
// Sleeps until a word changes. Linux futexes, because std::atomic::wait has no timeout and may spin.
#pragma once

#include <atomic>
#include <cstdint>

namespace sg {

// A point in time on CLOCK_MONOTONIC, or never.
class deadline {
 public:
  explicit deadline(std::int64_t timeout_ns) noexcept;  // from now; negative: never
  static deadline at(std::int64_t ns) noexcept {
    deadline then(-1);
    then.at_ns_ = ns;
    return then;
  }
  bool passed() const noexcept;
  std::int64_t at_ns() const noexcept { return at_ns_; }  // INT64_MAX: never
  bool is_forever() const noexcept { return at_ns_ == INT64_MAX; }

 private:
  std::int64_t at_ns_;
};

std::int64_t monotonic_ns() noexcept;

// Returns when `word` may differ from `expected`, or `until` has passed: callers test again. Signals do not end it.
void futex_wait(const std::atomic<std::uint32_t> &word, std::uint32_t expected, const deadline &until) noexcept;
void futex_wake_all(const std::atomic<std::uint32_t> &word) noexcept;

}  // namespace sg
