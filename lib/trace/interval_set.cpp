// SPDX-License-Identifier: Apache-2.0
#include "trace/interval_set.hpp"

#include <algorithm>

namespace sg::trace {

interval_set::interval_set(std::vector<time_interval> any) {
  std::sort(any.begin(), any.end(),
            [](const time_interval &x, const time_interval &y) { return x.start_ns < y.start_ns; });
  for (const time_interval &each : any) {
    if (each.end_ns <= each.start_ns) continue;
    if (!all_.empty() && each.start_ns <= all_.back().end_ns)
      all_.back().end_ns = std::max(all_.back().end_ns, each.end_ns);
    else
      all_.push_back(each);
  }
}

std::int64_t interval_set::length_ns() const noexcept {
  std::int64_t sum = 0;
  for (const time_interval &each : all_) sum += each.end_ns - each.start_ns;
  return sum;
}

interval_set interval_set::and_also(const interval_set &other) const {
  interval_set made;
  for (std::size_t i = 0, j = 0; i < all_.size() && j < other.all_.size();) {
    const time_interval &x = all_[i], &y = other.all_[j];
    const std::int64_t start = std::max(x.start_ns, y.start_ns), end = std::min(x.end_ns, y.end_ns);
    if (start < end) made.all_.push_back({start, end});
    if (x.end_ns < y.end_ns)
      ++i;
    else
      ++j;
  }
  return made;
}

interval_set interval_set::without(const interval_set &other) const {
  interval_set made;
  std::size_t j = 0;
  for (const time_interval &x : all_) {
    std::int64_t at = x.start_ns;
    while (j < other.all_.size() && other.all_[j].end_ns <= at) ++j;
    for (std::size_t next = j; next < other.all_.size() && other.all_[next].start_ns < x.end_ns; ++next) {
      const time_interval &y = other.all_[next];
      if (y.start_ns > at) made.all_.push_back({at, y.start_ns});
      at = std::max(at, y.end_ns);
    }
    if (at < x.end_ns) made.all_.push_back({at, x.end_ns});
  }
  return made;
}

}  // namespace sg::trace
