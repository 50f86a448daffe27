// SPDX-License-Identifier: Apache-2.0
// Compute units that are set aside for a stream each, and the lanes on them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "run/objects/dedicated_lane.hpp"

namespace sg {

struct partition {
  partition(const device &on, engine &in, std::int32_t priority, std::int32_t &units) : lane(on, in, priority, units) {}

  dedicated_lane lane;
  // Once its stream is gone: that one's latest job, which may still need the lane.
  const job *latest = nullptr;
  std::uint16_t latest_incarnation = 0;
  std::unique_ptr<partition> next;
};

class partitions {
 public:
  partitions(const device &on, const device_model &model, engine &in) noexcept
      : device_(on), model_(model), engine_(in) {}

  // Of so many compute units, those that a stream's products can be kept to. Throws SG_STATUS_UNSUPPORTED where the
  // device cannot be told.
  std::int32_t grant(std::int32_t wanted) const;

  // As many of `units`, which becomes how many, as no other partition has; nullptr where none can be set aside. Throws
  // sg::error, std::bad_alloc. Any thread.
  std::unique_ptr<partition> acquire(std::int32_t priority, std::int32_t &units);
  // Of a stream that is gone. Its units are free for others when its latest job, if there was one, has ended. Any
  // thread, the engine's too.
  void release(std::unique_ptr<partition> unused, const job *latest) noexcept;

 private:
  void free_idle() noexcept;

  const device &device_;
  const device_model &model_;
  engine &engine_;
  std::mutex lock_;
  std::unique_ptr<partition> returned_;
};

}  // namespace sg
