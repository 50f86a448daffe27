// SPDX-License-Identifier: Apache-2.0
#include "fork_lock.hpp"

#include <pthread.h>
#include <unistd.h>

#include <iterator>

namespace sg::cpu {
namespace {

constexpr int look_again_us = 50, most_looks = 1'000'000 / look_again_us;

// Threads take places in turn, so that they seldom share one.
struct alignas(64) place {
  std::atomic<std::int32_t> inside{0};
};
place places[64];
std::atomic<std::uint32_t> next_place{0};
std::atomic<std::int32_t> &own_place() noexcept {
  thread_local place &own = places[next_place.fetch_add(1, std::memory_order_relaxed) % std::size(places)];
  return own.inside;
}

std::mutex held;
void (*before_each_fork)() noexcept = nullptr;  // written while it is held
std::atomic<bool> forking{false};

void before_fork() {
  // Sequentially consistent, as fork_waits() is: either it sees this, or this thread sees it inside. The lock comes
  // afterwards, because a thread inside may need it.
  forking.store(true);
  int looks = 0;
  for (place &each : places)
    while (each.inside.load() != 0 && ++looks < most_looks) usleep(look_again_us);
  held.lock();
  if (before_each_fork != nullptr) before_each_fork();
}
void after_fork() {
  forking.store(false);
  held.unlock();
}
void after_fork_in_child() {
  for (place &each : places) each.inside.store(0);  // threads still inside do not exist in the child
  after_fork();
}

// When this library is loaded, and before its other handlers are installed, which so run first before a fork: a thread
// that holds the lock they wait for may wait for a product.
[[gnu::constructor(101)]] void install_handlers() { pthread_atfork(before_fork, after_fork, after_fork_in_child); }

}  // namespace

std::mutex &fork_lock() noexcept { return held; }

void call_before_each_fork(void (*what)() noexcept) noexcept { before_each_fork = what; }

fork_waits::fork_waits() noexcept : place_(own_place()) {
  for (;;) {
    place_.fetch_add(1);
    if (!forking.load()) return;
    place_.fetch_sub(1);
    usleep(look_again_us);
  }
}

}  // namespace sg::cpu
