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

// An engine of several equal units, of which a piece of work takes some.
class divided_engine {
 public:
  explicit divided_engine(std::int32_t units) : units_(units) {}
  // Takes `units` (0: all) from the first start >= ready from which they are free for so long.
  span occupy(std::int64_t ready, std::int64_t duration, std::int32_t units);

 private:
  struct stretch {
    std::int64_t start, end;
    std::int32_t taken;  // units
  };
  void take(span when, std::int32_t units);

  const std::int32_t units_;
  std::vector<stretch> busy_;  // in order, disjoint; those that touch differ
  std::int64_t floor_ = 0;     // what happened before is forgotten: nothing can start there any more
};

class timeline {
 public:
  timeline(int copy_engines, std::int32_t units) : shared_(copy_engines < 2), chip_(units) {}

  enum class direction { in, out };

  // Places a copy that takes `alone_ns` when its direction has the link to itself at its start, else `both_ways_ns`.
  span place_copy(direction way, std::int64_t ready, std::int64_t alone_ns, std::int64_t both_ways_ns);

  // Places work of so many of the chip's units; 0: of all.
  span place_compute(std::int64_t ready, std::int64_t duration_ns, std::int32_t units = 0) {
    return chip_.occupy(ready, duration_ns, units);
  }

 private:
  const bool shared_;  // one engine serves both directions
  engine in_, out_;
  divided_engine chip_;
};

}  // namespace sg::sim
