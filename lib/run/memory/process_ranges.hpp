// SPDX-License-Identifier: Apache-2.0
// The ranges of addresses that contexts of this process own: device memory, pinned memory, and the addresses of
// pipelines' stages, which have no memory. A context finds here what the others own.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

struct sg_backend_ops;

namespace sg {

class memory_map;

enum class range_kind : std::uint8_t { device, pinned, stage };

struct owned_range {
  std::uintptr_t lo = 0, hi = 0;
  range_kind kind = range_kind::device;
  const memory_map *owner = nullptr;
  const sg_backend_ops *backend = nullptr;  // of the owner's device

  bool holds(std::uintptr_t first, std::uint64_t bytes) const noexcept { return first >= lo && bytes <= hi - first; }
};

// Any thread.
namespace process_ranges {

// Bounds of all ranges of some kinds that there have been: mostly enough to exclude an address without a lock.
class hull {
 public:
  bool excludes(const void *memory, std::uint64_t bytes) const noexcept {
    const auto first = reinterpret_cast<std::uintptr_t>(memory);
    return first >= hi_.load(std::memory_order_acquire) || first + bytes <= lo_.load(std::memory_order_acquire);
  }
  void include(std::uintptr_t lo, std::uintptr_t hi) noexcept {  // one thread at a time
    lo_.store(std::min(lo, lo_.load(std::memory_order_relaxed)), std::memory_order_release);
    hi_.store(std::max(hi, hi_.load(std::memory_order_relaxed)), std::memory_order_release);
  }

 private:
  std::atomic<std::uintptr_t> lo_{UINTPTR_MAX}, hi_{0};
};

extern hull all, not_pinned, stages;

void add(const owned_range &range);  // Throws std::bad_alloc.
void remove(std::uintptr_t lo) noexcept;
// The first range that meets [memory, memory + bytes).
std::optional<owned_range> find(const void *memory, std::uint64_t bytes) noexcept;

}  // namespace process_ranges
}  // namespace sg
