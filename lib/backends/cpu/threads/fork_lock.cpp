// SPDX-License-Identifier: Apache-2.0
#include "fork_lock.hpp"

#include <pthread.h>
#include <unistd.h>

#include <iterator>

namespace sg::cpu {
namespace {

constexpr int look_again_us = 50, most_looks = 1'000'000 / look_again_us;

// Threads get slots round-robin, so that they seldom share one.
struct alignas(64) fork_slot {
  std::atomic<std::int32_t> inside{0};
};
fork_slot fork_slots[64];
std::atomic<std::uint32_t> next_fork_slot{0};
std::atomic<std::int32_t> &own_fork_slot() noexcept {
  thread_local fork_slot &own =
      fork_slots[next_fork_slot.fetch_add(1, std::memory_order_relaxed) % std::size(fork_slots)];
  return own.inside;
}

std::mutex held;
void (*before_each_fork)() noexcept = nullptr;  // written with the lock held
std::atomic<bool> forking{false};

void before_fork() {
  // Sequentially consistent with fork_waits(): either it sees this store, or this thread sees it inside. The lock is
  // taken afterwards, because a thread inside may need it.
  forking.store(true);
  int looks = 0;
  for (fork_slot &each : fork_slots)
    while (each.inside.load() != 0 && ++looks < most_looks) usleep(look_again_us);
  held.lock();
  if (before_each_fork != nullptr) before_each_fork();
}
void after_fork() {
  forking.store(false);
  held.unlock();
}
void after_fork_in_child() {
  for (fork_slot &each : fork_slots) each.inside.store(0);  // threads still inside do not exist in the child
  after_fork();
}

// Installed when this library is loaded, before its other handlers, so that it runs after them before a fork: a thread
// that holds the lock they wait for may wait for a GEMM.
[[gnu::constructor(101)]] void install_handlers() { pthread_atfork(before_fork, after_fork, after_fork_in_child); }

}  // namespace

std::mutex &fork_lock() noexcept { return held; }

void call_before_each_fork(void (*what)() noexcept) noexcept { before_each_fork = what; }

fork_waits::fork_waits() noexcept : slot_(own_fork_slot()) {
  for (;;) {
    slot_.fetch_add(1);
    if (!forking.load()) return;
    slot_.fetch_sub(1);
    usleep(look_again_us);
  }
}

}  // namespace sg::cpu
