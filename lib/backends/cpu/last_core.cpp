// SPDX-License-Identifier: Apache-2.0
#include "last_core.hpp"

namespace sg::cpu {

void last_core::lead_here(pid_t worker, std::int32_t workers) noexcept {
  const int core = sched_getcpu();
  if (workers < 2 || core < 0 || core >= CPU_SETSIZE) return;
  if (sched_getaffinity(worker, sizeof anywhere_, &anywhere_) != 0) return;
  if (CPU_COUNT(&anywhere_) > workers || !CPU_ISSET(core, &anywhere_)) return;
  CPU_ZERO(&here_);
  CPU_SET(core, &here_);
  if (sched_setaffinity(worker, sizeof here_, &here_) == 0) led_.store(true, std::memory_order_release);
}

void last_core::leave() noexcept {
  if (!led_.exchange(false, std::memory_order_acquire)) return;
  cpu_set_t now;
  if (sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &here_))
    sched_setaffinity(0, sizeof anywhere_, &anywhere_);
}

}  // namespace sg::cpu
