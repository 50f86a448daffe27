// SPDX-License-Identifier: Apache-2.0
#include "run/tracker.hpp"

#include <algorithm>
#include <bit>

namespace sg {

std::int32_t &tracker::level::bucket(std::uintptr_t cell) noexcept {
  return heads_[(cell * 0x9E3779B97F4A7C15ull >> 24) & (heads_.size() - 1)];
}

// Sweeps what has ended, and doubles when that is less than half. Changes nothing when memory runs out.
void tracker::level::make_room() {
  const auto living = static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const entry &e) { return e.who && !e.ended(); }));
  std::vector<entry> entries(std::max<std::size_t>({64, entries_.size(), std::bit_ceil(living * 2 + 2)}));
  std::vector<std::int32_t> heads(entries.size(), -1);
  entries.swap(entries_);
  heads.swap(heads_);
  std::int32_t place = 0;
  lo_ = UINTPTR_MAX;
  hi_ = 0;
  for (const entry &e : entries) {
    if (!e.who || e.ended()) continue;
    lo_ = std::min(lo_, e.bytes.lo);
    hi_ = std::max(hi_, e.bytes.hi);
    entry &kept = entries_[static_cast<std::size_t>(place)] = e;
    std::int32_t &head = bucket(e.cell);
    kept.next = head;
    head = place++;
  }
  for (free_ = -1; place < static_cast<std::int32_t>(entries_.size()); ++place) {
    entries_[static_cast<std::size_t>(place)].next = free_;
    free_ = place;
  }
}

void tracker::level::insert(int shift, const footprint &bytes, job &who) {
  for (std::uintptr_t cell = bytes.lo >> shift; cell <= (bytes.hi - 1) >> shift; ++cell) {
    if (free_ < 0) make_room();
    const std::int32_t place = free_;
    entry &e = entries_[static_cast<std::size_t>(place)];
    free_ = e.next;
    std::int32_t &head = bucket(cell);
    e = {bytes, cell, &who, who.incarnation(), who.generation, head};
    head = place;
    lo_ = std::min(lo_, bytes.lo);
    hi_ = std::max(hi_, bytes.hi);
  }
}

void tracker::level::order_bucket(std::int32_t &head, const footprint &bytes, job &next, bool needs_success,
                                  std::uint32_t oldest) {
  for (std::int32_t *link = &head; *link >= 0;) {
    entry &e = entries_[static_cast<std::size_t>(*link)];
    const bool long_ended = static_cast<std::int32_t>(e.generation - oldest) < 0;
    if (e.who != &next && (long_ended || overlap(e.bytes, bytes))) {
      if (!long_ended && !e.ended()) {
        next.order_after(*e.who, e.incarnation, needs_success);
      } else {
        if (!long_ended) next.comes_after_end_of(*e.who, e.incarnation);
        const std::int32_t place = *link;
        *link = e.next;
        e.who = nullptr;
        e.next = free_;
        free_ = place;
        continue;
      }
    }
    link = &e.next;
  }
}

void tracker::level::order(int shift, const footprint &bytes, job &next, bool needs_success, std::uint32_t oldest) {
  if (bytes.lo >= hi_ || bytes.hi <= lo_) return;
  const std::uintptr_t first = bytes.lo >> shift, last = (bytes.hi - 1) >> shift;
  if (last - first >= heads_.size()) {
    for (std::int32_t &head : heads_) order_bucket(head, bytes, next, needs_success, oldest);
    return;
  }
  for (std::uintptr_t cell = first; cell <= last; ++cell)
    order_bucket(bucket(cell), bytes, next, needs_success, oldest);
}

void tracker::table::order(const footprint &bytes, job &next, bool needs_success, std::uint32_t oldest) {
  for (std::uint64_t left = used; left; left &= left - 1) {
    const int shift = std::countr_zero(left);
    levels[shift].order(shift, bytes, next, needs_success, oldest);
  }
}

void tracker::table::insert(const footprint &bytes, job &who) {
  const int shift = std::clamp<int>(std::bit_width(bytes.hi - bytes.lo - 1) + 1, first_shift, last_shift);
  levels[shift].insert(shift, bytes, who);
  used |= std::uint64_t{1} << shift;
}

void tracker::add(job &next, const access *accesses, std::size_t count, std::uint32_t oldest) {
  // What must have succeeded first: of two orders after the same job only the first is kept.
  for (std::size_t i = 0; i < count; ++i)
    if (accesses[i].reads) writers_.order(accesses[i].bytes, next, true, oldest);
  for (std::size_t i = 0; i < count; ++i) {
    if (!accesses[i].writes) continue;
    writers_.order(accesses[i].bytes, next, false, oldest);
    readers_.order(accesses[i].bytes, next, false, oldest);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (accesses[i].reads) readers_.insert(accesses[i].bytes, next);
    if (accesses[i].writes) writers_.insert(accesses[i].bytes, next);
  }
}

}  // namespace sg
