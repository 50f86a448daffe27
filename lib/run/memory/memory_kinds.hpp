// SPDX-License-Identifier: Apache-2.0
// The memory space of an address: pageable, pinned, the device's or a peer's.
#pragma once

#include "backend/device.hpp"
#include "run/memory/memory_map.hpp"

namespace sg {

// Any thread.
class memory_kinds {
 public:
  explicit memory_kinds(const device &on) noexcept : device_(on) {}

  const device &on() const noexcept { return device_; }
  memory_map &known() noexcept { return known_; }
  // The memory space of [memory, memory + bytes); always SG_MEMORY_DEVICE with unified memory.
  memory_space of(const void *memory, std::uint64_t bytes) const noexcept {
    if (device_.unified()) return SG_MEMORY_DEVICE;
    const memory_map::memo *const known = known_.find(memory, bytes);
    return known ? known->space() : device_.space_of(memory, bytes);
  }
  // Likewise with a memo of the latest answer, for repeated queries of the same memory.
  memory_space of(const void *memory, std::uint64_t bytes, memory_map::memo &latest) const noexcept {
    if (device_.unified()) return SG_MEMORY_DEVICE;
    if (!known_.holds(latest, memory, bytes)) {
      const memory_map::memo *const known = known_.find(memory, bytes);
      if (!known) return device_.space_of(memory, bytes);
      latest = *known;
    }
    return latest.space();
  }

 private:
  const device &device_;
  memory_map known_;
};

}  // namespace sg
