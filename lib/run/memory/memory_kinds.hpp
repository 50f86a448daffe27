// SPDX-License-Identifier: Apache-2.0
// The memory space of an address: pageable, pinned, the device's or a peer's.
#pragma once

#include <memory>
#include <span>

#include "devices/device.hpp"
#include "run/memory/memory_map.hpp"

namespace sg {

// Any thread.
class memory_kinds {
 public:
  // The devices of a machine, which outlive it.
  explicit memory_kinds(std::span<const std::shared_ptr<device>> all) noexcept
      : all_(all), device_(*all.front()), known_(&device_.ops()) {}

  const device &on() const noexcept { return device_; }
  memory_map &known() noexcept { return known_; }
  // The memory space of [memory, memory + bytes); of usable memory always SG_MEMORY_DEVICE with unified memory.
  memory_space of(const void *memory, std::uint64_t bytes) const noexcept {
    if (device_.unified() && process_ranges::not_pinned.excludes(memory, bytes)) return SG_MEMORY_DEVICE;
    const memory_map::memo *const known = known_.find(memory, bytes);
    if (known) return device_.unified() ? memory_space() : known->space();
    return of_unknown(memory, bytes);
  }
  // The same with a memo of the latest answer, for repeated queries of the same memory.
  memory_space of(const void *memory, std::uint64_t bytes, memory_map::memo &latest) const noexcept {
    if (device_.unified() && process_ranges::not_pinned.excludes(memory, bytes)) return SG_MEMORY_DEVICE;
    if (!known_.holds(latest, memory, bytes)) {
      const memory_map::memo *const known = known_.find(memory, bytes);
      if (!known) return of_unknown(memory, bytes);
      latest = *known;
    }
    return device_.unified() ? memory_space() : latest.space();
  }
  // The same, of memory that the context can use. Throws sg::error(SG_STATUS_INVALID_ARGUMENT) with its name.
  memory_space usable(const void *memory, std::uint64_t bytes, const char *name) const;

  // Memory as one device sees it: that of the machine's other devices is its peers'.
  memory_space seen_from(device_index device, memory_space space) const noexcept;
  // Memory as a device sees it, as the machine's: of a peer in the machine, the device's.
  memory_space in_machine(memory_space seen) const noexcept;

 private:
  memory_space of_unknown(const void *memory, std::uint64_t bytes) const noexcept;  // not in a range of this context
  memory_space seen_by_devices(const void *memory, std::uint64_t bytes) const noexcept;

  const std::span<const std::shared_ptr<device>> all_;
  const device &device_;  // the first
  memory_map known_;
};

}  // namespace sg
