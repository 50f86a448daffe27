// SPDX-License-Identifier: Apache-2.0
// The cpu backend's clock, and the pause of its short polls.
#pragma once

#include <cstdint>
#include <ctime>

namespace sg::cpu {

inline std::int64_t now_ns() noexcept {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

// Yields the core's units to its other hardware thread.
inline void relax() noexcept {
#ifdef __SSE2__
  __builtin_ia32_pause();
#endif
}

}  // namespace sg::cpu
