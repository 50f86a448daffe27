// SPDX-License-Identifier: Apache-2.0
#include "run/dispatch/device_usage.hpp"

#include <algorithm>

#include "ops/copy.hpp"
#include "run/job/job.hpp"
#include "run/program/inflight_command.hpp"

namespace sg {

void device_usage::count(lane_kind where, std::int64_t start_ns, std::int64_t end_ns, std::uint64_t bytes) noexcept {
  if (where == lane_kind::staging || where == lane_kind::copy_peer) return;  // not counted
  if (end_ns == 0 || (start_ns == 0 && !begins_at_zero_)) return;            // not timed
  lane &of = lanes_[static_cast<std::size_t>(where)];
  of.commands.fetch_add(1, std::memory_order_relaxed);
  if (bytes != 0) of.bytes.fetch_add(bytes, std::memory_order_relaxed);
  const std::lock_guard held(of.lock);
  of.busy_ns.store(of.busy_ns.load(std::memory_order_relaxed) + of.fresh_ns(start_ns, std::max(start_ns, end_ns)),
                   std::memory_order_relaxed);
}

// Commands of one kind may be reported in another order than that of their ends: the latest idle times are remembered.
std::int64_t device_usage::lane::fresh_ns(std::int64_t start_ns, std::int64_t end_ns) noexcept {
  std::int64_t fresh = 0;
  const std::int64_t latest = latest_end_ns.load(std::memory_order_relaxed);
  for (gap &each : gaps) {
    const std::int64_t from = std::max(each.start_ns, start_ns), to = std::min(each.end_ns, end_ns);
    if (from >= to) continue;
    fresh += to - from;
    const gap rest{to, each.end_ns};
    each.end_ns = from;
    if (rest.start_ns < rest.end_ns) remember(rest);
  }
  if (end_ns <= latest) return fresh;
  if (latest != 0 && start_ns > latest) remember({latest, start_ns});
  latest_end_ns.store(end_ns, std::memory_order_relaxed);
  return fresh + end_ns - std::max(start_ns, latest);
}

void device_usage::lane::remember(const gap &idle) noexcept {
  gap *const shortest = std::min_element(gaps.begin(), gaps.end(), [](const gap &x, const gap &y) {
    return x.end_ns - x.start_ns < y.end_ns - y.start_ns;
  });
  if (idle.end_ns - idle.start_ns > shortest->end_ns - shortest->start_ns) *shortest = idle;
}

void device_usage::count_command(const inflight_command &f, std::int64_t not_before_ns) noexcept {
  const schedule &s = *f.owner->program->schedule;
  const command &c = s.commands[f.index];
  if (c.is<ops::marker>()) return;
  const bool copies = c.is<ops::copy_in>() || c.is<ops::copy_out>();
  count(c.where.kind, std::max(f.start_ns, not_before_ns), f.end_ns,
        copies ? static_cast<std::uint64_t>(bytes_of_copy(s.buffers, c)) : 0);
}

context_counters::lane_counters device_usage::lanes() const noexcept {
  context_counters::lane_counters now{};
  for (std::size_t i = 0; i < counted_lanes; ++i)
    now[i] = {lanes_[i].commands.load(std::memory_order_relaxed), lanes_[i].bytes.load(std::memory_order_relaxed),
              lanes_[i].busy_ns.load(std::memory_order_relaxed)};
  return now;
}

std::int64_t device_usage::latest_end_ns() const noexcept {
  std::int64_t latest = 0;
  for (const lane &each : lanes_) latest = std::max(latest, each.latest_end_ns.load(std::memory_order_relaxed));
  return latest;
}

}  // namespace sg
