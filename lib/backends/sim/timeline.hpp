// SPDX-License-Identifier: Apache-2.0
// Virtual time: the busy times of the engines of the simulated device, in nanoseconds since the device was opened. Each
// command is scheduled when it is enqueued, so the times depend only on the order of the calls.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace sg::sim {

struct span {
  std::int64_t start = 0;
  std::int64_t end = 0;
};

// One engine, which executes one command at a time.
class engine {
 public:
  // The first start >= ready with a gap of `duration`.
  std::int64_t first_gap(std::int64_t ready, std::int64_t duration) const noexcept;
  void occupy(span taken);
  bool busy_at(std::int64_t time) const noexcept;

 private:
  std::vector<span> busy_;           // ordered, disjoint; adjacent spans are merged
  std::int64_t earliest_start_ = 0;  // earlier spans are dropped: no command can start before this
};

// An engine of several equal units, of which a command occupies some.
class divided_engine {
 public:
  explicit divided_engine(std::int32_t units) : units_(units) {}
  // Occupies `units` (0: all) from the first start >= ready at which they are free for that long.
  span occupy(std::int64_t ready, std::int64_t duration, std::int32_t units);

 private:
  struct stretch {
    std::int64_t start, end;
    std::int32_t taken;  // units
  };
  void take(span when, std::int32_t units);

  const std::int32_t units_;
  std::vector<stretch> busy_;        // ordered, disjoint; adjacent ones differ in `taken`
  std::int64_t earliest_start_ = 0;  // earlier stretches are dropped: no command can start before this
};

class timeline {
 public:
  timeline(int copy_engines, std::int32_t units) : shared_(copy_engines < 2), chip_(units) {}

  enum class direction { in, out };

  // The duration of a copy that starts then, from that without what devices share.
  using sharing = std::function<std::int64_t(std::int64_t start_ns, std::int64_t duration_ns)>;

  // Schedules a copy: it takes `alone_ns` if its direction has the link to itself at its start, else `both_ways_ns`.
  span schedule_copy(direction way, std::int64_t ready, std::int64_t alone_ns, std::int64_t both_ways_ns,
                     const sharing &shared = {});

  // Schedules a copy over the device's links to other devices.
  span schedule_peer_copy(std::int64_t ready, std::int64_t duration_ns, const sharing &shared = {}) {
    return occupy(peers_, ready, duration_ns, shared);
  }

  // Schedules work on some of the chip's units; 0: on all; negative: on none.
  span schedule_compute(std::int64_t ready, std::int64_t duration_ns, std::int32_t units = 0) {
    return units < 0 ? span{ready, ready + duration_ns} : chip_.occupy(ready, duration_ns, units);
  }

 private:
  static span occupy(engine &of, std::int64_t ready, std::int64_t duration_ns, const sharing &shared);

  const bool shared_;  // one engine for both directions
  engine in_, out_, peers_;
  divided_engine chip_;
};

}  // namespace sg::sim
