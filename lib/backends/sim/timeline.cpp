// SPDX-License-Identifier: Apache-2.0
#include "timeline.hpp"

#include <algorithm>

namespace sg::sim {

namespace {

// Spans remembered by an engine: many times what the deepest schedule keeps open at once.
constexpr std::size_t remembered_spans = 4096;

// The first span that ends after `time`.
auto ending_after(const std::vector<span> &busy, std::int64_t time) {
  return std::upper_bound(busy.begin(), busy.end(), time, [](std::int64_t t, const span &s) { return t < s.end; });
}

}  // namespace

std::int64_t engine::first_gap(std::int64_t ready, std::int64_t duration) const noexcept {
  std::int64_t start = std::max(ready, floor_);
  for (auto next = ending_after(busy_, start); next != busy_.end() && next->start < start + duration; ++next)
    start = std::max(start, next->end);
  return start;
}

void engine::occupy(span taken) {
  if (taken.end <= taken.start) return;
  const auto next = busy_.begin() + (ending_after(busy_, taken.start) - busy_.begin());
  const bool joins_next = next != busy_.end() && next->start == taken.end;
  const bool joins_last = next != busy_.begin() && std::prev(next)->end == taken.start;
  if (joins_last && joins_next) {
    std::prev(next)->end = next->end;
    busy_.erase(next);
  } else if (joins_last) {
    std::prev(next)->end = taken.end;
  } else if (joins_next) {
    next->start = taken.start;
  } else {
    busy_.insert(next, taken);
  }
  if (busy_.size() > remembered_spans) {
    const auto kept = busy_.begin() + remembered_spans / 2;
    floor_ = std::prev(kept)->end;
    busy_.erase(busy_.begin(), kept);
  }
}

bool engine::busy_at(std::int64_t time) const noexcept {
  const auto next = ending_after(busy_, time);
  return next != busy_.end() && next->start <= time;
}

span timeline::place_copy(direction way, std::int64_t ready, std::int64_t alone_ns, std::int64_t both_ways_ns) {
  engine &own = way == direction::in || shared_ ? in_ : out_;
  const engine &opposite = way == direction::in ? out_ : in_;
  std::int64_t duration = alone_ns;
  std::int64_t start = own.first_gap(ready, duration);
  if (!shared_ && opposite.busy_at(start)) {
    duration = both_ways_ns;
    start = own.first_gap(ready, duration);
  }
  const span placed{start, start + duration};
  own.occupy(placed);
  return placed;
}

span timeline::place_compute(std::int64_t ready, std::int64_t duration_ns) {
  const std::int64_t start = chip_.first_gap(ready, duration_ns);
  const span placed{start, start + duration_ns};
  chip_.occupy(placed);
  return placed;
}

}  // namespace sg::sim
