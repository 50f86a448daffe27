// SPDX-License-Identifier: Apache-2.0
// Steers a worker that is woken to a core, if there are as many workers as cores: to one without an awake worker, and
// if possible not the waker's. A scheduler may choose otherwise: in a virtual machine a sleeping core looks as if its
// host had taken it away, and Linux puts a woken thread behind the waker. On two cores of an EPYC two workers then
// shared one for 4 ms at a time, with the other idle (no record is kept). An awake worker may migrate freely.
#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace sg::cpu {

// The cores of the awake workers, as reported by them.
class awake_cores {
 public:
  static constexpr int nowhere = -1;

  // Called by a worker that migrates, wakes (from nowhere) or is about to sleep (to nowhere).
  void moves(int from, int to) noexcept {
    if (known(from)) workers_[static_cast<std::size_t>(from)].fetch_sub(1, std::memory_order_relaxed);
    if (known(to)) workers_[static_cast<std::size_t>(to)].fetch_add(1, std::memory_order_relaxed);
  }
  bool none_on(int core) const noexcept {
    return workers_[static_cast<std::size_t>(core)].load(std::memory_order_relaxed) <= 0;
  }
  static constexpr bool known(int core) noexcept { return core >= 0 && core < CPU_SETSIZE; }

 private:
  std::array<std::atomic<std::int32_t>, CPU_SETSIZE> workers_{};
};

class free_core {
 public:
  // Called by a thread that is about to wake the worker. Returns the only core that the worker can run on now, or
  // nowhere. No effect if it may use more cores than there are workers, or if no core is free.
  int steer(pid_t worker, std::int32_t workers, const awake_cores &awake) noexcept;
  // Called by the worker, once awake and before it sleeps. A mask that another thread has set meanwhile stays.
  void leave() noexcept;

 private:
  enum class state : std::uint8_t { free, steering, steered };
  bool choose(pid_t worker, std::int32_t workers, const awake_cores &awake) noexcept;

  std::atomic<state> state_{state::free};
  cpu_set_t anywhere_{}, chosen_{};
};

}  // namespace sg::cpu
