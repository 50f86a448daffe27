// SPDX-License-Identifier: Apache-2.0
#include "thread.hpp"

#include <csignal>
#include <cstddef>
#include <initializer_list>

namespace sg::cpu {

bool start_thread(pthread_t &out, void *(*main)(void *), void *argument) noexcept {
  constexpr std::size_t stack_bytes = std::size_t{8} << 20;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setstacksize(&attributes, stack_bytes);
  sigset_t all, before;
  sigfillset(&all);
  // The application handles faults: a blocked fault signal would terminate the process without its handler.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool started = pthread_create(&out, &attributes, main, argument) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return started;
}

}  // namespace sg::cpu
