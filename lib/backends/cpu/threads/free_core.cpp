// SPDX-License-Identifier: Apache-2.0
#include "free_core.hpp"

namespace sg::cpu {

int free_core::steer(pid_t worker, std::int32_t workers, const awake_cores &awake) noexcept {
  // A worker that woke before it was steered has not called leave() yet: its mask must not be overwritten.
  state expected = state::free;
  if (!state_.compare_exchange_strong(expected, state::steering, std::memory_order_acquire))
    return awake_cores::nowhere;
  const bool is_steered = choose(worker, workers, awake) && sched_setaffinity(worker, sizeof chosen_, &chosen_) == 0;
  int only = awake_cores::nowhere;
  if (is_steered && CPU_COUNT(&chosen_) == 1)
    for (only = 0; !CPU_ISSET(only, &chosen_);) ++only;
  state_.store(is_steered ? state::steered : state::free, std::memory_order_release);
  return only;
}

// Chooses among all cores that it may use; false: there is no choice.
bool free_core::choose(pid_t worker, std::int32_t workers, const awake_cores &awake) noexcept {
  if (workers < 2 || sched_getaffinity(worker, sizeof anywhere_, &anywhere_) != 0) return false;
  const int all = CPU_COUNT(&anywhere_);
  if (all > workers) return false;
  CPU_ZERO(&chosen_);
  for (int core = 0, left = all; left > 0; ++core) {
    if (!CPU_ISSET(core, &anywhere_)) continue;
    --left;
    if (awake.none_on(core)) CPU_SET(core, &chosen_);
  }
  const int wakers = sched_getcpu();
  if (awake_cores::known(wakers) && CPU_COUNT(&chosen_) > 1) CPU_CLR(wakers, &chosen_);
  const int count = CPU_COUNT(&chosen_);
  return count > 0 && count < all;
}

void free_core::leave() noexcept {
  if (state_.load(std::memory_order_acquire) != state::steered) return;
  cpu_set_t now;
  if (sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &chosen_))
    sched_setaffinity(0, sizeof anywhere_, &anywhere_);
  state_.store(state::free, std::memory_order_release);
}

}  // namespace sg::cpu
