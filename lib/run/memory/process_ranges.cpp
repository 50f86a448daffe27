// SPDX-License-Identifier: Apache-2.0
#include "run/memory/process_ranges.hpp"

#include <iterator>
#include <map>
#include <mutex>

namespace sg::process_ranges {

constinit hull all, not_pinned, stages;

namespace {

struct range_table {
  std::mutex lock;
  std::map<std::uintptr_t, owned_range> ranges;  // by lo
};

// Never destroyed: contexts may be released by threads that outlive exit handlers.
range_table &table() {
  static range_table *const made = new range_table;
  return *made;
}

}  // namespace

void add(const owned_range &range) {
  range_table &known = table();
  const std::lock_guard lock(known.lock);
  known.ranges.insert_or_assign(range.lo, range);
  all.include(range.lo, range.hi);
  if (range.kind != range_kind::pinned) not_pinned.include(range.lo, range.hi);
  if (range.kind == range_kind::stage) stages.include(range.lo, range.hi);
}

void remove(std::uintptr_t lo) noexcept {
  range_table &known = table();
  const std::lock_guard lock(known.lock);
  known.ranges.erase(lo);
}

std::optional<owned_range> find(const void *memory, std::uint64_t bytes) noexcept {
  if (all.excludes(memory, bytes)) return std::nullopt;
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  range_table &known = table();
  const std::lock_guard lock(known.lock);
  const auto after = known.ranges.upper_bound(first);
  if (after != known.ranges.begin() && std::prev(after)->second.hi > first) return std::prev(after)->second;
  if (after != known.ranges.end() && after->first - first < bytes) return after->second;
  return std::nullopt;
}

}  // namespace sg::process_ranges
