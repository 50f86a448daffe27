// SPDX-License-Identifier: Apache-2.0
// What the library does at the events of a process: fork, exit.
#pragma once

#include <atomic>

namespace sg {

class job_home;

extern std::atomic<bool> g_process_exits;
// True once exit() has begun: no new work is taken, no callback is called.
inline bool process_exits() noexcept { return g_process_exits.load(std::memory_order_acquire); }

// Contexts that exit() has to bring to rest. A backend's first context installs the handler for exit; by then the
// device's libraries are loaded and warm, so theirs run after ours. Throws sg::error.
void register_home(job_home &created);
void unregister_home(job_home &retired) noexcept;

// Records the names of all contexts in the trace.
void record_names_of_homes() noexcept;

}  // namespace sg
