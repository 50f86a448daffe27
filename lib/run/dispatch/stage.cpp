// SPDX-License-Identifier: Apache-2.0
#include "run/dispatch/stage.hpp"

#include <cstring>
#include <new>
#include <vector>

#include "base/bf16.hpp"
#include "base/copy_past_caches.hpp"
#include "run/dispatch/engine.hpp"
#include "run/dispatch/traced_commands.hpp"
#include "trace/profiler_ranges.hpp"
#include "trace/recorder.hpp"

namespace sg {

namespace {

// bytes of a row; for shorter ones the partial cache lines cost too much
constexpr std::size_t least_past_caches = 1024;

void run_downcast(const downcast &n) noexcept {
  for (std::int64_t column = 0; column < n.columns; ++column)
    round_to_bf16(n.to + column * n.count, n.from + column * n.pitch, static_cast<std::size_t>(n.count));
}

}  // namespace

void stage(inflight_command &f) noexcept {
  sg_status status = SG_STATUS_OK;
  const char *message = nullptr;
  f.is_skipped = f.owner->failed();
  if (f.is_skipped) return f.home->complete_calls(f, SG_STATUS_OK, nullptr, 0, 0, 1);
  const bool in_profiler = trace::profiler_is_on();
  if (in_profiler) trace::push_range("stage");
  const std::int64_t traced_ns = f.owner->trace_number != 0 && trace::recording_is_on() ? monotonic_ns() : 0;
  try {
    const schedule &s = *f.owner->program->schedule;
    const command &c = s.commands[f.index];
    std::vector<sg_backend_copy> copies;
    if (const auto rounding = lower_downcast(s.buffers, c, f.owner->operands))
      run_downcast(*rounding);
    else
      lower_staging(s.buffers, c, f.owner->operands, copies);
    // Staging memory should stay in the caches, where the device reads it; results should not.
    const auto copy_run = [&](void *to, const void *from, std::size_t bytes) {
      if (c.is<ops::unpack>() && bytes >= least_past_caches)
        copy_past_caches(to, from, bytes);
      else
        std::memcpy(to, from, bytes);
    };
    for (const sg_backend_copy &copy : copies)
      for (std::int64_t run = 0; run < copy.height; ++run)
        copy_run(static_cast<char *>(copy.dst) + run * copy.dst_pitch,
                 static_cast<const char *>(copy.src) + run * copy.src_pitch, static_cast<std::size_t>(copy.width));
  } catch (const std::bad_alloc &) {
    status = SG_STATUS_OUT_OF_MEMORY;
    message = "out of host memory while staging";
  }
  if (in_profiler) trace::pop_range();
  if (traced_ns != 0) trace_staging(f, traced_ns);
  f.home->complete_calls(f, status, message, 0, 0, 1);
}

}  // namespace sg
