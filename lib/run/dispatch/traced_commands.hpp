// SPDX-License-Identifier: Apache-2.0
// Events of a trace for what the engine has run. All but trace_schedule() are called where
// recording_is_on(), for a job with a trace number.
#pragma once

#include <cstdint>

#include "run/dispatch/batch.hpp"
#include "run/job/job.hpp"
#include "run/program/inflight_command.hpp"

namespace sg {

// The schedule of a job that starts; of a batch's members nothing.
void trace_schedule(const job &starting) noexcept;
// The one command of a job.
void trace_single(const inflight_command &f) noexcept;
// A command of a run, or a batch of them; what it waited for had completed at `not_before_ns`.
void trace_of_run(const inflight_command &f, std::int64_t not_before_ns) noexcept;
// A batch of jobs. Each job completes with its time.
void trace_batch(const batch &b, std::uint64_t context) noexcept;
// A staging worker's command, on its thread.
void trace_staging(const inflight_command &f, std::int64_t start_ns) noexcept;
// GEMMs that were computed on this thread.
void trace_here(const job &work, std::int64_t start_ns, std::int64_t end_ns) noexcept;

}  // namespace sg
