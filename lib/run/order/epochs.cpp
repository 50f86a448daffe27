// SPDX-License-Identifier: Apache-2.0
#include "run/order/epochs.hpp"

#include <iterator>
#include <numeric>

namespace sg {

std::uint32_t epochs::count_in() noexcept {
  if (++counted_ > most_jobs) open_next();
  ++begun_[present_ % ring_size];
  return present_;
}

std::int64_t epochs::count() const noexcept {
  std::int64_t all = 0;
  for (std::uint32_t g = oldest_; g != present_ + 1; ++g)
    all += begun_[g % ring_size] - completed_[g % ring_size].count.load();
  return all;
}

std::int64_t epochs::total() const noexcept {
  return std::accumulate(std::begin(begun_), std::end(begun_), std::int64_t{0});
}

// A sleeper stores its awaited count before it reads `count`; a completion reads `awaited` after it has counted: one of
// the two sees the other.
void epochs::completed(std::uint32_t epoch, std::int64_t count) noexcept {
  completions &here = completed_[epoch % ring_size];
  const std::int64_t now = here.count.fetch_add(count) + count;
  std::int64_t awaited = here.awaited.load();
  if (now < awaited) return;
  // On failure another completion has reset it, or a sleeper awaits a larger count.
  here.awaited.compare_exchange_strong(awaited, no_waiter);
  wakings_.fetch_add(1);
  futex_wake_all(wakings_);
}

bool epochs::open_next() noexcept {
  oldest();  // otherwise it might fall behind by more epochs than the ring has
  if (!none_in_flight(present_ + 1)) return false;
  ++present_;
  counted_ = 0;
  return true;
}

std::uint32_t epochs::oldest() noexcept {
  while (oldest_ != present_ && none_in_flight(oldest_)) ++oldest_;
  return oldest_;
}

bool epochs::completed_up_to(std::uint32_t epoch) noexcept {
  if (static_cast<std::int32_t>(oldest() - epoch) > 0) return true;
  return oldest_ == epoch && none_in_flight(epoch);
}

// A smaller awaited count stays: reaching it wakes all sleepers.
bool epochs::watch_none_in_flight(std::uint32_t epoch) noexcept {
  completions &here = completed_[epoch % ring_size];
  const std::int64_t all = begun_[epoch % ring_size];
  std::int64_t awaited = here.awaited.load();
  while (all < awaited && !here.awaited.compare_exchange_weak(awaited, all)) {
  }
  return none_in_flight(epoch);
}

// Most jobs complete in order of submission, so the sleeper awaits the latest epoch first.
bool epochs::watch_completed_up_to(std::uint32_t epoch) noexcept {
  if (completed_up_to(epoch)) return true;
  for (std::uint32_t g = epoch; g != oldest_ - 1; --g)
    if (!none_in_flight(g) && !watch_none_in_flight(g)) return false;
  return true;
}

bool epochs::watch_closed(std::uint32_t epoch) noexcept {
  return present_ != epoch || open_next() || (watch_none_in_flight(present_ + 1) && open_next());
}

}  // namespace sg
