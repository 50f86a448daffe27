// SPDX-License-Identifier: Apache-2.0
#include "base/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace sg {

std::int64_t monotonic_ns() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

deadline::deadline(std::int64_t timeout_ns) noexcept {
  if (timeout_ns < 0 || __builtin_add_overflow(monotonic_ns(), timeout_ns, &at_ns_)) at_ns_ = INT64_MAX;
}

bool deadline::passed() const noexcept { return at_ns_ != INT64_MAX && monotonic_ns() >= at_ns_; }

void futex_wait(const std::atomic<std::uint32_t> &word, std::uint32_t expected, const deadline &until) noexcept {
  timespec at;
  timespec *timeout = nullptr;
  if (until.at_ns() != INT64_MAX) {
    at.tv_sec = until.at_ns() / 1'000'000'000;
    at.tv_nsec = until.at_ns() % 1'000'000'000;
    timeout = &at;
  }
  const int saved = errno;
  while (word.load(std::memory_order_acquire) == expected) {
    const long result = syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, timeout, nullptr,
                                FUTEX_BITSET_MATCH_ANY);  // absolute time on CLOCK_MONOTONIC
    if (result == 0 || errno != EINTR) break;
  }
  errno = saved;
}

void futex_wake_all(const std::atomic<std::uint32_t> &word) noexcept {
  const int saved = errno;
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  errno = saved;
}

}  // namespace sg
