// SPDX-License-Identifier: Apache-2.0
// How a thread waits for all work of a context.
#include <algorithm>
#include <optional>

#include "run/context.hpp"

namespace sg {

std::int64_t context::expected_end_ns() const noexcept {
  std::int64_t latest_ns = 0;
  for (const device_room &each : rooms_) latest_ns = std::max(latest_ns, each.executor.expected_end_ns());
  return latest_ns;
}

bool context::synchronize(const deadline &until) noexcept {
  const trace::timed_event waiting(trace::event_kind::wait, number());
  if (!wait_for_epochs(until)) return false;
  for (const device_room &each : rooms_) host_has_seen(each.executor.usage().latest_end_ns());
  return true;
}

bool context::wait_for_epochs(const deadline &until) noexcept {
  const auto holds = [this](auto &&condition) {
    bool result = false;
    submission_lock_.run([&] { result = condition(); });
    return result;
  };
  const auto sleep_until = [&](auto &&watched) {
    for (std::uint32_t seen = in_flight_.wakings(); !holds(watched); seen = in_flight_.wakings()) {
      if (until.passed()) return false;
      in_flight_.sleep(seen, until);
    }
    return true;
  };
  std::optional<std::uint32_t> mine;
  const bool is_closed = sleep_until([&] {
    if (!mine) mine = in_flight_.present();
    return in_flight_.watch_closed(*mine);
  });
  if (!is_closed) return false;
  const auto over = [&] { return in_flight_.completed_up_to(*mine); };
  const auto watched = [&] { return in_flight_.watch_completed_up_to(*mine); };
  if (!polls()) return sleep_until(watched);

  const auto poll_for = [&](std::int64_t ns) {
    const std::int64_t left_ns = until.at_ns() - monotonic_ns();
    if (left_ns > 0) poll_until([&] { return holds(over); }, std::min(ns, left_ns));
  };
  poll_for(long_poll_ns);
  // Polls near the expected end of the last command, but mostly sleeps while short commands follow each other: the
  // expected end is read at most once a millisecond, because more commands may be submitted.
  std::int64_t next_poll_ns = monotonic_ns() + 4 * long_poll_ns;
  for (std::uint32_t seen = in_flight_.wakings(); !holds(watched); seen = in_flight_.wakings()) {
    if (until.passed()) return false;
    const std::int64_t now_ns = monotonic_ns(), left_ns = expected_end_ns() - now_ns;
    std::int64_t wake_ns = std::max(next_poll_ns, now_ns + long_poll_ns);
    if (left_ns > long_poll_ns) {
      wake_ns = next_poll_ns = now_ns + left_ns - long_poll_ns / 2;
    } else if (left_ns > 0 && now_ns >= next_poll_ns) {
      poll_for(poll_time_ns(left_ns));
      next_poll_ns = monotonic_ns() + 4 * long_poll_ns;
      continue;
    }
    in_flight_.sleep(seen, deadline::at(std::min(wake_ns, until.at_ns())));
  }
  return true;
}

}  // namespace sg
