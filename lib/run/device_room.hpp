// SPDX-License-Identifier: Apache-2.0
// Per-device state of a context: arenas, the executor with its lanes, lanes for events and partitions.
#pragma once

#include <cstdint>

#include "model/device_model.hpp"
#include "run/dispatch/engine.hpp"
#include "run/job/job_home.hpp"
#include "run/memory/arena_pool.hpp"
#include "run/objects/event_lanes.hpp"
#include "run/objects/partitions.hpp"

namespace sg {

struct device_room {
  // `keeper` owns this object and all that its jobs touch. Throws sg::error.
  device_room(const device &on, device_index index, const device_model &model, const engine::settings &how,
              const node_stagers &staging, job_home &keeper)
      : device_memory(on, index, arena_pool::memory::device, model.usable_memory(), keeper.number()),
        staging_memory(on, index, arena_pool::memory::pinned, INT64_MAX, keeper.number()),
        executor(model, how, device_memory, staging_memory, staging, keeper),
        lanes_of_events(on, executor),
        unit_partitions(on, model, executor) {}

  arena_pool device_memory, staging_memory;
  engine executor;
  event_lanes lanes_of_events;
  partitions unit_partitions;
};

}  // namespace sg
