// SPDX-License-Identifier: Apache-2.0
#include "run/memory_map.hpp"

#include <algorithm>
#include <iterator>

namespace sg {

void memory_map::add(const void *memory, std::uint64_t bytes, sg_memory_kind kind) {
  const auto lo = reinterpret_cast<std::uintptr_t>(memory);
  const std::lock_guard lock(lock_);
  ranges_.insert_or_assign(lo, range{lo, lo + std::max<std::uint64_t>(bytes, 1), kind});
}

void memory_map::remove(const void *memory) noexcept {
  const std::lock_guard lock(lock_);
  if (ranges_.erase(reinterpret_cast<std::uintptr_t>(memory)) > 0) state_.store(++states_, std::memory_order_release);
}

bool memory_map::look_up(std::uintptr_t first, std::uint64_t bytes, sg_memory_kind &kind) const noexcept {
  thread_local unsigned next = 0;
  const std::lock_guard lock(lock_);
  auto found = ranges_.upper_bound(first);
  if (found == ranges_.begin() || !(--found)->second.holds(first, bytes)) return false;
  // Nothing is removed while the lock is held.
  memos_[next++ % std::size(memos_)] = {state_.load(std::memory_order_relaxed), found->second};
  kind = found->second.kind;
  return true;
}

}  // namespace sg
