// SPDX-License-Identifier: Apache-2.0
#include "home.hpp"

namespace sg::cpu {

void home::enter(std::int32_t workers) noexcept {
  if (sched_getaffinity(0, sizeof anywhere_, &anywhere_) != 0) return;
  const int cores = CPU_COUNT(&anywhere_);
  if (cores < 2 || workers < cores) return;
  int left = number_ % cores, core = 0;
  while (!CPU_ISSET(core, &anywhere_) || left-- > 0) ++core;
  CPU_ZERO(&here_);
  CPU_SET(core, &here_);
  inside_ = sched_setaffinity(0, sizeof here_, &here_) == 0;
}

void home::leave() noexcept {
  if (!inside_) return;
  inside_ = false;
  cpu_set_t now;
  if (sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &here_))
    sched_setaffinity(0, sizeof anywhere_, &anywhere_);
}

}  // namespace sg::cpu
