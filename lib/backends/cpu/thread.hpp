// SPDX-License-Identifier: Apache-2.0
// A thread of the backend: it takes none of the application's signals, nor do the threads that libraries start on it,
// and its stack is as large as those libraries need, whatever limit the process gives new threads.
#pragma once

#include <pthread.h>

namespace sg::cpu {

// False: there is no memory for a thread, or the process may have no more.
bool start_thread(pthread_t &out, void *(*main)(void *), void *argument) noexcept;

}  // namespace sg::cpu
