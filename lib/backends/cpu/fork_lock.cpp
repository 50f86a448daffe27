// SPDX-License-Identifier: Apache-2.0
#include "fork_lock.hpp"

#include <pthread.h>

namespace sg::cpu {
namespace {

std::mutex held;
void before_fork() { held.lock(); }
void after_fork() { held.unlock(); }

// When this library is loaded, which is after OpenBLAS, whose own handlers so run while it is held.
[[maybe_unused]] const int at_fork = pthread_atfork(before_fork, after_fork, after_fork);

}  // namespace

std::mutex &fork_lock() noexcept { return held; }

}  // namespace sg::cpu
