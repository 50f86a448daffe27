// SPDX-License-Identifier: Apache-2.0
// NVTX ranges for a profiler that listens (Nsight Systems and others): jobs, calls, waits and staging. Without one, and
// in builds without the header of NVTX, nothing.
#pragma once

#include <cstdint>

#include "trace/event.hpp"

namespace sg::trace {

// Whether the process was started by a profiler that takes ranges. Asks once, at the first call.
bool profiler_listens() noexcept;

// On this thread. Only if profiler_listens().
void push_range(const char *name) noexcept;
void pop_range() noexcept;
// A range that may end on another thread; never 0.
std::uint64_t start_range(const char *name) noexcept;
void end_range(std::uint64_t started) noexcept;

}  // namespace sg::trace
