// SPDX-License-Identifier: Apache-2.0
// The clock of the cpu backend's times.
#pragma once

#include <cstdint>
#include <ctime>

namespace sg::cpu {

inline std::int64_t now_ns() noexcept {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

}  // namespace sg::cpu
