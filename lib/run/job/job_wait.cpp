// SPDX-License-Identifier: Apache-2.0
// How a thread waits for a job.
#include <algorithm>
#include <utility>

#include "run/job/job.hpp"
#include "run/job/job_home.hpp"
#include "trace/recorder.hpp"

namespace sg {

// Sleeps until shortly before the predicted completion of the job, then polls the device. A completion that comes
// before or after that wakes the thread.
bool job::wait(const deadline &until) noexcept {
  trace::timed_event waiting(trace::event_kind::wait, owner_->number(), until.is_forever() || !done());
  if (waiting.is_on()) waiting.concerns(trace_number);
  // Not with a timeout: first use of a buffer's pages could delay this thread beyond it.
  const bool helps = until.is_forever() && may_help;
  if (helps && !done()) owner_->help(*this);
  bool polled_before_lane = false, polled = false, swept = deadline_at_ns == 0;
  std::int64_t early_ns = 0;
  for (;;) {
    const std::uint32_t state = state_.load(std::memory_order_acquire);
    if (state & done_bit) break;
    std::int64_t wake_ns = until.at_ns();
    if (owner_->polls()) {
      const std::int64_t expected_ns = expected_ns_.load(std::memory_order_relaxed), now_ns = monotonic_ns();
      std::int64_t poll_ns = 0;
      if (expected_ns == 0)  // not in a lane yet
        poll_ns = std::exchange(polled_before_lane, true) ? 0 : job_home::short_poll_ns;
      else if (early_ns = std::max(early_ns, job_home::early_by(expected_ns - now_ns));
               expected_ns - now_ns > 2 * early_ns)
        wake_ns = std::min(wake_ns, expected_ns - early_ns);
      else if (!std::exchange(polled, true))
        poll_ns = job_home::poll_time_ns(expected_ns - now_ns);
      if (poll_ns > 0) {
        owner_->poll_until(
            [&] {
              if (helps) owner_->help(*this);
              return done() || until.passed();
            },
            poll_ns);
        continue;
      }
    }
    if (until.passed()) return false;
    if (!swept) {  // otherwise the service thread sweeps, which a callback may block: perhaps the one that waits here
      if (deadline_passed()) {
        swept = true;
        owner_->sweep();
        continue;
      }
      wake_ns = std::min(wake_ns, deadline_at_ns);
    }
    if (state & waited_bit)
      futex_wait(state_, state, deadline::at(wake_ns));
    else
      state_.fetch_or(waited_bit, std::memory_order_acq_rel);
  }
  owner_->host_has_seen(end_ns());
  return true;
}

void job::expect_end(std::int64_t at_ns, std::int64_t predicted_ns) noexcept {
  expected_ns_.store(at_ns, std::memory_order_relaxed);
  if (at_ns != 0 && predicted_ns > job_home::long_poll_ns) announce_issued();
}

void job::announce_issued() noexcept {
  if (state_.fetch_or(issued_bit, std::memory_order_acq_rel) & waited_bit) futex_wake_all(state_);
}

void job::wait_issued() noexcept {
  const auto over = [&] { return (state_.load(std::memory_order_acquire) & (done_bit | issued_bit)) != 0; };
  if (over()) return;
  owner_->poll_until(over, job_home::short_poll_ns);
  while (!over()) {
    const std::uint32_t state = state_.fetch_or(waited_bit, std::memory_order_acq_rel) | waited_bit;
    if (!(state & (done_bit | issued_bit))) futex_wait(state_, state, deadline(-1));
  }
}

}  // namespace sg
