// SPDX-License-Identifier: Apache-2.0
#include "base/combining_mutex.hpp"

#include <sched.h>

#include "base/futex.hpp"

namespace sg {

namespace {

// Sections of others that one thread executes before another has to: its own call takes that much longer.
constexpr int most_of_others = 16;
// For how long to ask before sleeping: sleeping and being woken takes longer than some sections.
constexpr std::int64_t asks_for_ns = 10'000;

// Pauses between two questions; from some on, for others that this core has to run.
class patience {
 public:
  void pause() noexcept {
    if (++asked_ % 128 == 0) sched_yield();
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

  int asked_ = 0;
};

}  // namespace

bool combining_mutex::enter(request &mine) noexcept {
  request *const before = last_.exchange(&mine, std::memory_order_acq_rel);
  if (!before) return true;
  before->next.store(&mine, std::memory_order_release);
  return await(mine) == holds;
}

// A request is told last: its memory is its thread's again from then on.
void combining_mutex::leave(request &mine) noexcept {
  request *latest = &mine;
  for (int others = 0;; ++others) {
    request *next = latest->next.load(std::memory_order_acquire);
    if (!next) {
      request *expected = latest;
      const bool was_last = last_.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel);
      // Somebody has come behind it, and is about to say who.
      for (patience some; !was_last && !next; next = latest->next.load(std::memory_order_acquire)) some.pause();
    }
    if (latest != &mine) tell(*latest, executed);
    if (!next) return;
    if (!next->section || others == most_of_others) return tell(*next, holds);
    if (const request *after = next->next.load(std::memory_order_acquire); after && after->fetch)
      after->fetch(after->what);
    next->section(next->what);
    latest = next;
  }
}

void combining_mutex::tell(request &waiting, state what) noexcept {
  std::atomic<std::uint32_t> &now = waiting.now;  // for its address: the request may be gone once it is told
  if (now.exchange(what, std::memory_order_acq_rel) == sleeps) futex_wake_all(now);
}

combining_mutex::state combining_mutex::await(request &mine) noexcept {
  patience some;
  for (const deadline enough(asks_for_ns); !enough.passed();) {
    for (int i = 0; i < 32; ++i, some.pause()) {
      const std::uint32_t now = mine.now.load(std::memory_order_acquire);
      if (now != waits) return static_cast<state>(now);
    }
  }
  std::uint32_t now = waits;
  mine.now.compare_exchange_strong(now, sleeps, std::memory_order_acq_rel);
  while ((now = mine.now.load(std::memory_order_acquire)) == sleeps) futex_wait(mine.now, sleeps, deadline(-1));
  return static_cast<state>(now);
}

}  // namespace sg
