// SPDX-License-Identifier: Apache-2.0
// Partitions: compute units reserved for one stream each, and the lanes on them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "run/objects/dedicated_lane.hpp"

namespace sg {

struct partition {
  partition(const device &on, engine &in, std::int32_t priority, std::int32_t &units) : lane(on, in, priority, units) {}

  dedicated_lane lane;
  // After the stream is destroyed: its latest job, which may still use the lane.
  const job *latest = nullptr;
  std::uint16_t latest_incarnation = 0;
  std::unique_ptr<partition> next;
};

class partitions {
 public:
  partitions(const device &on, const device_model &model, engine &in) noexcept
      : device_(on), model_(model), engine_(in) {}

  // The number of compute units, near `wanted`, that GEMMs of a stream can be limited to. Throws SG_STATUS_UNSUPPORTED
  // if the device has no such limit.
  std::int32_t grant(std::int32_t wanted) const;

  // Reserves at most `units` compute units, which is set to their number; nullptr if none can be reserved. Throws
  // sg::error, std::bad_alloc. Any thread.
  std::unique_ptr<partition> acquire(std::int32_t priority, std::int32_t &units);
  // Releases the partition of a destroyed stream. Its units are free for others when its latest job, if any, has
  // completed. Any thread, the engine's too.
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
