// SPDX-License-Identifier: Apache-2.0
// Sets of time: disjoint intervals in order. What two commands do at the same time counts once.
#pragma once

#include <cstdint>
#include <vector>

namespace sg::trace {

struct time_interval {
  std::int64_t start_ns = 0, end_ns = 0;
  bool operator==(const time_interval &) const = default;
};

class interval_set {
 public:
  interval_set() = default;
  explicit interval_set(std::vector<time_interval> any);  // in any order, overlapping or empty

  const std::vector<time_interval> &intervals() const noexcept { return all_; }
  std::int64_t length_ns() const noexcept;

  interval_set and_also(const interval_set &other) const;  // the time in both
  interval_set without(const interval_set &other) const;   // the time in this one alone

 private:
  std::vector<time_interval> all_;
};

}  // namespace sg::trace
