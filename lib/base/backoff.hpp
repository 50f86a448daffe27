// SPDX-License-Identifier: Apache-2.0
// A thread's pauses while it tests for what another is about to do.
#pragma once

#include <sched.h>
#include <time.h>

namespace sg {

// Back-off between two tests. It sometimes yields the core to another thread, and finally to one of lower priority.
class backoff {
 public:
  void pause() noexcept {
    if (++spins_ % 4096 == 0) {
      constexpr timespec brief{0, 50'000};
      nanosleep(&brief, nullptr);
    } else if (spins_ % 128 == 0) {
      sched_yield();
    }
    relax();
  }

 private:
  static void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
  }

  unsigned spins_ = 0;
};

}  // namespace sg
