// SPDX-License-Identifier: Apache-2.0
#include "last_core.hpp"

namespace sg::cpu {

void last_core::lead_here(pid_t worker, std::int32_t workers) noexcept {
  // A worker that was awake sooner than it was led has yet to leave: its mask is no other's to remember.
  state expected = state::free;
  if (!state_.compare_exchange_strong(expected, state::leading, std::memory_order_acquire)) return;
  state_.store(led(worker, workers) ? state::led : state::free, std::memory_order_release);
}

bool last_core::led(pid_t worker, std::int32_t workers) noexcept {
  const int core = sched_getcpu();
  if (workers < 2 || core < 0 || core >= CPU_SETSIZE) return false;
  if (sched_getaffinity(worker, sizeof anywhere_, &anywhere_) != 0) return false;
  if (CPU_COUNT(&anywhere_) > workers || !CPU_ISSET(core, &anywhere_)) return false;
  CPU_ZERO(&here_);
  CPU_SET(core, &here_);
  return sched_setaffinity(worker, sizeof here_, &here_) == 0;
}

void last_core::leave() noexcept {
  if (state_.load(std::memory_order_acquire) != state::led) return;
  cpu_set_t now;
  if (sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &here_))
    sched_setaffinity(0, sizeof anywhere_, &anywhere_);
  state_.store(state::free, std::memory_order_release);
}

}  // namespace sg::cpu
