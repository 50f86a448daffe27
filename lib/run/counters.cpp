// SPDX-License-Identifier: Apache-2.0
// The counters of a context.
#include <algorithm>
#include <new>

#include "run/context.hpp"

namespace sg {

context_counters context::counters() noexcept {
  context_counters now;
  now.number = number();
  // The device's name is kept by the device; a counter without it is better than none.
  try {
    for (const auto &each : devices()) {
      if (!now.device.empty()) now.device += ',';
      now.device += each->name();
    }
  } catch (const std::bad_alloc &) {
  }
  submission_lock_.run([&] {
    now.submitted = static_cast<std::uint64_t>(in_flight_.total());
    now.in_flight = static_cast<std::uint64_t>(std::max<std::int64_t>(0, in_flight_.count()));
    // Jobs are counted as failed before they are counted as completed; what was reported never decreases.
    const std::uint64_t completed = now.submitted - now.in_flight;
    const auto grown = [](std::uint64_t &reported, std::uint64_t present) {
      return reported = std::max(reported, present);
    };
    now.failed = grown(reported_.failed, std::min(failed_.load(std::memory_order_relaxed), completed));
    now.cancelled =
        grown(reported_.cancelled, std::min(cancelled_.load(std::memory_order_relaxed), completed - now.failed));
    now.succeeded = grown(reported_.succeeded, completed - std::min(completed, now.failed + now.cancelled));
  });
  now.elapsed_ns = virtual_clock_ ? host_seen_ns_.load(std::memory_order_relaxed) : monotonic_ns() - created_ns_;
  for (std::size_t i = 0; i < devices().size(); ++i) {
    device_room &each = rooms_[device_index(i)];
    const device_usage &usage = each.executor.usage();
    context_counters::part its;
    its.lanes = usage.lanes();
    its.device_bytes = static_cast<std::uint64_t>(each.device_memory.held()) + each.device_memory.kept_buffer_bytes() +
                       static_cast<std::uint64_t>(each.device_memory.buffer_bytes.load(std::memory_order_relaxed));
    for (std::size_t lane = 0; lane < counted_lanes; ++lane) {
      now.lanes[lane].commands += its.lanes[lane].commands;
      now.lanes[lane].bytes += its.lanes[lane].bytes;
      now.lanes[lane].busy_ns += its.lanes[lane].busy_ns;
    }
    for (std::size_t priority = 0; priority < now.queued.size(); ++priority)
      now.queued[priority] += usage.queued(priority);
    if (virtual_clock_) now.elapsed_ns = std::max(now.elapsed_ns, usage.latest_end_ns());
    now.device_bytes += its.device_bytes;
    now.pinned_bytes += static_cast<std::uint64_t>(each.staging_memory.held());
    if (devices().size() > 1) try {
        its.device = on(device_index(i)).name();
        now.parts.push_back(std::move(its));
      } catch (const std::bad_alloc &) {
      }
  }
  now.pinned_bytes += pinned_.allocated_bytes();
  return now;
}

}  // namespace sg
