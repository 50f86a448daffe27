// SPDX-License-Identifier: Apache-2.0
// Virtual time: which engine of the simulated device is busy when. Times are nanoseconds since the device was opened.
// Each command gets its place when it is enqueued, so the times depend on the order of the calls and on nothing else.
#pragma once

#include <cstdint>
#include <vector>

namespace sg::sim {

struct span {
  std::int64_t start = 0;
  std::int64_t end = 0;
};

// One engine, which does one thing at a time.
class engine {
 public:
  // The first start >= ready that leaves `duration` undisturbed.
  std::int64_t first_gap(std::int64_t ready, std::int64_t duration) const noexcept;
  void occupy(span taken);
  bool busy_at(std::int64_t time) const noexcept;

 private:
  std::vector<span> busy_;  // in order, disjoint; spans that touch are one
  std::int64_t floor_ = 0;  // what happened before is forgotten: nothing can start there any more
};

class timeline {
 public:
  explicit timeline(int copy_engines) noexcept : shared_(copy_engines < 2) {}

  enum class direction { in, out };

  // Places a copy that takes `alone_ns` when its direction has the link to itself at its start, else `both_ways_ns`.
  span place_copy(direction way, std::int64_t ready, std::int64_t alone_ns, std::int64_t both_ways_ns);

  // Places work of the whole chip.
  span place_compute(std::int64_t ready, std::int64_t duration_ns);

 private:
  const bool shared_;  // one engine serves both directions
  engine in_, out_, chip_;
};

}  // namespace sg::sim
