// SPDX-License-Identifier: Apache-2.0
// Compute units that are set aside for a stream each, and the lanes on them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "run/objects/named_lane.hpp"

namespace sg {

struct partition {
  partition(context &on, std::int32_t priority, std::int32_t &units) : lane(on, priority, units) {}

  named_lane lane;
  // Once its stream is gone: that one's latest job, which may still need the lane.
  const job *latest = nullptr;
  std::uint16_t latest_incarnation = 0;
  std::unique_ptr<partition> next;
};

class partitions {
 public:
  explicit partitions(context &on) noexcept : on_(on) {}

  // As many of `units`, which becomes how many, as no other partition has; nullptr where none can be set aside. Throws
  // sg::error, std::bad_alloc. Any thread.
  std::unique_ptr<partition> take(std::int32_t priority, std::int32_t &units);
  // Of a stream that is gone. Its units are free for others when its latest job, if there was one, has ended. Any
  // thread, the engine's too.
  void give_back(std::unique_ptr<partition> unused, const job *latest) noexcept;

 private:
  void free_idle() noexcept;

  context &on_;
  std::mutex lock_;
  std::unique_ptr<partition> returned_;
};

}  // namespace sg
