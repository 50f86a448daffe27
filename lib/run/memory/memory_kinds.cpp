// SPDX-License-Identifier: Apache-2.0
#include "run/memory/memory_kinds.hpp"

#include "base/error.hpp"

namespace sg {

// One device that works knows the memory of all: other devices' is its peers'.
memory_space memory_kinds::seen_by_devices(const void *memory, std::uint64_t bytes) const noexcept {
  if (all_.size() == 1) return device_.space_of(memory, bytes);
  std::size_t asked = 0;
  while (asked + 1 < all_.size() && all_[asked]->status() != SG_STATUS_OK) ++asked;
  const memory_space seen = all_[asked]->space_of(memory, bytes);
  return seen == SG_MEMORY_DEVICE ? memory_space::of_device(device_index(asked)) : in_machine(seen);
}

memory_space memory_kinds::in_machine(memory_space seen) const noexcept {
  for (std::size_t i = 0; seen == SG_MEMORY_PEER && i < all_.size(); ++i)
    if (all_[i]->index() == seen.peer()) return memory_space::of_device(device_index(i));
  return seen;
}

memory_space memory_kinds::seen_from(device_index device, memory_space space) const noexcept {
  if (space != SG_MEMORY_DEVICE) return space;
  if (space.device() == device) return SG_MEMORY_DEVICE;
  return memory_space::of_peer(static_cast<std::uint16_t>(all_[number_of(space.device())]->index()));
}

memory_space memory_kinds::of_unknown(const void *memory, std::uint64_t bytes) const noexcept {
  const memory_space seen = device_.unified() ? memory_space() : seen_by_devices(memory, bytes);
  const auto range = process_ranges::find(memory, bytes);
  if (!range) return seen;
  const bool inside = range->holds(reinterpret_cast<std::uintptr_t>(memory), bytes);
  if (range->kind == range_kind::pinned) {  // the devices of one backend can all access it
    const bool counts = inside && seen == SG_MEMORY_PAGEABLE && range->backend == &device_.ops();
    return counts ? memory_space(SG_MEMORY_PINNED) : seen;
  }
  if (range->owner == &known_) return memory_space::beyond();
  const bool has_access =
      range->kind == range_kind::device &&
      (device_.unified() ? range->backend == &device_.ops() : seen == SG_MEMORY_DEVICE || seen == SG_MEMORY_PEER);
  if (!has_access) return memory_space::foreign();
  return inside ? seen : memory_space::beyond();
}

memory_space memory_kinds::usable(const void *memory, std::uint64_t bytes, const char *name) const {
  const memory_space found = of(memory, bytes);
  if (found == memory_space::foreign())
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s (%p) is in the device memory of another context", name, memory);
  if (found == memory_space::beyond())
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s (%p, %llu bytes) ends beyond its buffer", name, memory,
                static_cast<unsigned long long>(bytes));
  return found;
}

}  // namespace sg
