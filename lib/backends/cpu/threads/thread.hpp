// SPDX-License-Identifier: Apache-2.0
// A thread of the backend: it and the threads that libraries start on it block the application's signals, and its stack
// is large enough for those libraries, whatever the process's limit is.
#pragma once

#include <pthread.h>

namespace sg::cpu {

// False: out of memory, or the process's thread limit is reached.
bool start_thread(pthread_t &out, void *(*main)(void *), void *argument) noexcept;

}  // namespace sg::cpu
