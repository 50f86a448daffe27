// SPDX-License-Identifier: Apache-2.0
#include "timeline.hpp"

#include <algorithm>
#include <iterator>

namespace sg::sim {

namespace {

// Spans kept by an engine: many times the number that the deepest schedule has open at once.
constexpr std::size_t remembered_spans = 4096;

// The first span with an end after `time`.
auto ending_after(const std::vector<span> &busy, std::int64_t time) {
  return std::upper_bound(busy.begin(), busy.end(), time, [](std::int64_t t, const span &s) { return t < s.end; });
}

}  // namespace

std::int64_t engine::first_gap(std::int64_t ready, std::int64_t duration) const noexcept {
  std::int64_t start = std::max(ready, earliest_start_);
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
    earliest_start_ = std::prev(kept)->end;
    busy_.erase(busy_.begin(), kept);
  }
}

bool engine::busy_at(std::int64_t time) const noexcept {
  const auto next = ending_after(busy_, time);
  return next != busy_.end() && next->start <= time;
}

span timeline::occupy(engine &of, std::int64_t ready, std::int64_t duration_ns, const sharing &shared) {
  std::int64_t start = of.first_gap(ready, duration_ns), duration = duration_ns;
  while (shared) {
    duration = shared(start, duration_ns);
    const std::int64_t later = of.first_gap(start, duration);
    if (later == start) break;
    start = later;
  }
  const span scheduled{start, start + duration};
  of.occupy(scheduled);
  return scheduled;
}

span timeline::schedule_copy(direction way, std::int64_t ready, std::int64_t alone_ns, std::int64_t both_ways_ns,
                             const sharing &shared) {
  engine &own = way == direction::in || shared_ ? in_ : out_;
  const engine &opposite = way == direction::in ? out_ : in_;
  const bool is_beside = !shared_ && opposite.busy_at(own.first_gap(ready, alone_ns));
  return occupy(own, ready, is_beside ? both_ways_ns : alone_ns, shared);
}

span divided_engine::occupy(std::int64_t ready, std::int64_t duration, std::int32_t units) {
  const std::int32_t wanted = units > 0 ? std::min(units, units_) : units_;
  std::int64_t start = std::max(ready, earliest_start_);
  auto next =
      std::upper_bound(busy_.begin(), busy_.end(), start, [](std::int64_t t, const stretch &s) { return t < s.end; });
  for (; next != busy_.end() && next->start < start + duration; ++next)
    if (next->taken + wanted > units_) start = std::max(start, next->end);
  const span scheduled{start, start + duration};
  if (duration > 0) take(scheduled, wanted);
  return scheduled;
}

void divided_engine::take(span when, std::int32_t units) {
  std::vector<stretch> fresh;  // the stretches inside, and the pieces that they are cut into
  const auto first = std::upper_bound(busy_.begin(), busy_.end(), when.start,
                                      [](std::int64_t t, const stretch &s) { return t <= s.end; });
  const auto add = [&](std::int64_t start, std::int64_t end, std::int32_t taken) {
    if (start >= end) return;
    if (!fresh.empty() && fresh.back().end == start && fresh.back().taken == taken)
      fresh.back().end = end;
    else
      fresh.push_back({start, end, taken});
  };
  auto last = first;
  std::int64_t at = when.start;
  for (; last != busy_.end() && last->start <= when.end; ++last) {
    add(last->start, std::min(last->end, when.start), last->taken);
    add(at, std::min(last->start, when.end), units);
    add(std::max(last->start, when.start), std::min(last->end, when.end), last->taken + units);
    at = std::max(at, std::min(last->end, when.end));
    add(std::max(last->start, when.end), last->end, last->taken);
  }
  add(at, when.end, units);
  const auto position = busy_.erase(first, last);
  busy_.insert(position, fresh.begin(), fresh.end());
  if (busy_.size() > remembered_spans) {
    const auto kept = busy_.begin() + remembered_spans / 2;
    earliest_start_ = std::prev(kept)->end;
    busy_.erase(busy_.begin(), kept);
  }
}

}  // namespace sg::sim
