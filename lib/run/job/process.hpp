// SPDX-License-Identifier: Apache-2.0
// The library's handling of fork and exit.
#pragma once

#include <streamgemm/backend.h>

#include <atomic>
#include <vector>

#include "run/job/context_counters.hpp"

namespace sg {

class job_home;

extern std::atomic<bool> g_process_exits;
// True once exit() has begun: no new work is taken, no callback is called.
inline bool process_exits() noexcept { return g_process_exits.load(std::memory_order_acquire); }

// Registers a context that exit() must shut down. A backend's first context installs the exit handler: by then the
// device's libraries are loaded and initialized, so their handlers run after ours. Throws sg::error.
void register_home(job_home &created);
void unregister_home(job_home &retired) noexcept;

// Around the destruction of a context on its own thread, which nobody joins: exit() waits until it has ended, since the
// destructors of the device's libraries and of the program run next. False: exit() has begun, and the context, at rest,
// is left to the end of the process.
bool begin_destruction() noexcept;
void end_destruction() noexcept;

// What contexts do when a recording begins: their names in the trace, and their devices' times; and when it has ended.
void record_names_of_homes() noexcept;
void end_recording_of_homes() noexcept;

// Commands that a backend has given up may use any memory of its devices, whichever context allocated it: the buffers
// that exist in any are retired.
void retire_buffers_of_homes(const sg_backend_ops &of) noexcept;

// The counters of all contexts, the oldest first. Throws std::bad_alloc.
std::vector<context_counters> counters_of_homes();

}  // namespace sg
