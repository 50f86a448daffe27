// SPDX-License-Identifier: Apache-2.0
#include "run/memory/memory_map.hpp"

#include <algorithm>
#include <iterator>

namespace sg {

void memory_map::add(const void *memory, std::uint64_t bytes, memory_space space, bool stage) {
  memo added;
  added.lo_ = reinterpret_cast<std::uintptr_t>(memory);
  added.hi_ = added.lo_ + std::max<std::uint64_t>(bytes, 1);
  added.space_ = space;
  const range_kind kind = stage                       ? range_kind::stage
                          : space == SG_MEMORY_PINNED ? range_kind::pinned
                                                      : range_kind::device;
  {
    const std::lock_guard lock(lock_);
    ranges_.insert_or_assign(added.lo_, added);
  }
  process_ranges::add({added.lo_, added.hi_, kind, this, backend_});
}

void memory_map::remove(const void *memory) noexcept {
  process_ranges::remove(reinterpret_cast<std::uintptr_t>(memory));
  const std::lock_guard lock(lock_);
  if (ranges_.erase(reinterpret_cast<std::uintptr_t>(memory)) > 0) state_.store(++states_, std::memory_order_release);
}

const memory_map::memo *memory_map::find(const void *memory, std::uint64_t bytes) const noexcept {
  thread_local memo latest[4];
  thread_local unsigned next = 0;
  for (const memo &each : latest)
    if (holds(each, memory, bytes)) return &each;
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  const std::lock_guard lock(lock_);
  auto found = ranges_.upper_bound(first);
  if (found == ranges_.begin()) return nullptr;
  const memo &before = (--found)->second;
  if (first >= before.hi_ || bytes > before.hi_ - first) return nullptr;
  memo &place = latest[next++ % std::size(latest)];
  place = before;
  place.state_ = state_.load(std::memory_order_relaxed);  // no range is removed while the lock is held
  return &place;
}

}  // namespace sg
