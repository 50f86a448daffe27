// SPDX-License-Identifier: Apache-2.0
#include "run/tracker.hpp"

#include <algorithm>
#include <bit>

namespace sg {

// Cells that follow each other have buckets in one cache line, as operands in turn lie in memory in turn.
std::int32_t &tracker::level::bucket(std::uintptr_t cell) noexcept {
  constexpr std::uintptr_t neighbours = 16;
  return heads_[((cell / neighbours * 0x9E3779B97F4A7C15ull >> 24) ^ cell % neighbours) & (heads_.size() - 1)];
}

// Sweeps what has ended, and doubles when that is less than half. Changes nothing when memory runs out.
void tracker::level::make_room(std::uint32_t oldest, const untold_failures &untold) {
  const auto stays = [&](const entry &e) {
    return e.who && (!(e.is_before(oldest) || e.ended()) || e.cause(untold) != 0);
  };
  const auto living = static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), stays));
  std::vector<entry> entries(std::max<std::size_t>({64, entries_.size(), std::bit_ceil(living * 2 + 2)}));
  std::vector<std::int32_t> heads(entries.size(), -1);
  entries.swap(entries_);
  heads.swap(heads_);
  std::int32_t place = 0;
  lo_ = UINTPTR_MAX;
  hi_ = 0;
  for (const entry &e : entries) {
    if (!stays(e)) continue;
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

void tracker::level::insert(int shift, const footprint &bytes, job &who, std::uint32_t oldest,
                            const untold_failures &untold) {
  for (std::uintptr_t cell = bytes.lo >> shift; cell <= (bytes.hi - 1) >> shift; ++cell) {
    if (free_ < 0) make_room(oldest, untold);
    const std::int32_t place = free_;
    entry &e = entries_[static_cast<std::size_t>(place)];
    free_ = e.next;
    if (free_ >= 0) __builtin_prefetch(&entries_[static_cast<std::size_t>(free_)], 1);
    std::int32_t &head = bucket(cell);
    e = {bytes, cell, &who, who.incarnation(), who.generation, head};
    head = place;
    lo_ = std::min(lo_, bytes.lo);
    hi_ = std::max(hi_, bytes.hi);
  }
}

template <class Visit>
void tracker::level::each_bucket(int shift, const footprint &bytes, Visit &&visit) {
  if (bytes.lo >= hi_ || bytes.hi <= lo_) return;
  const std::uintptr_t first = bytes.lo >> shift, last = (bytes.hi - 1) >> shift;
  if (last - first >= heads_.size()) {
    for (std::int32_t &head : heads_) visit(head);
    return;
  }
  for (std::uintptr_t cell = first; cell <= last; ++cell) visit(bucket(cell));
}

void tracker::level::free_entry(std::int32_t *link) noexcept {
  const std::int32_t place = *link;
  entry &e = entries_[static_cast<std::size_t>(place)];
  *link = e.next;
  e.who = nullptr;
  e.next = free_;
  free_ = place;
}

bool tracker::level::order_bucket(std::int32_t &head, const demand &wanted) {
  bool covered = false;
  for (std::int32_t *link = &head; *link >= 0;) {
    entry &e = entries_[static_cast<std::size_t>(*link)];
    const bool long_ended = e.is_before(wanted.oldest);
    if (e.is_of(&wanted.next) || !(long_ended || overlap(e.bytes, wanted.bytes))) {
      link = &e.next;
      continue;
    }
    if (long_ended || e.ended() || !wanted.next.order_after(*e.who, e.incarnation, wanted.reads)) {
      if (!long_ended) wanted.next.comes_after_end_of(*e.who, e.incarnation);
      const std::uint64_t cause = e.cause(wanted.untold);
      if (cause == 0) {
        free_entry(link);
        continue;
      }
      if (wanted.reads && overlap(e.bytes, wanted.bytes)) wanted.next.fail_dependency(cause);
    }
    covered = covered || covers(wanted.bytes, e.bytes);
    link = &e.next;
  }
  return covered;
}

bool tracker::level::order(int shift, const demand &wanted) {
  bool covered = false;
  each_bucket(shift, wanted.bytes, [&](std::int32_t &head) { covered = order_bucket(head, wanted) || covered; });
  return covered;
}

void tracker::level::remove_covered(int shift, const footprint &bytes, const job *but) noexcept {
  each_bucket(shift, bytes, [&](std::int32_t &head) {
    for (std::int32_t *link = &head; *link >= 0;) {
      entry &e = entries_[static_cast<std::size_t>(*link)];
      if (!(but && e.is_of(but)) && covers(bytes, e.bytes))
        free_entry(link);
      else
        link = &e.next;
    }
  });
}

bool tracker::table::order(const demand &wanted) {
  bool covered = false;
  for (std::uint64_t left = used; left; left &= left - 1) {
    const int shift = std::countr_zero(left);
    covered = levels[shift].order(shift, wanted) || covered;
  }
  return covered;
}

void tracker::table::insert(const footprint &bytes, job &who, std::uint32_t oldest, const untold_failures &untold) {
  const int shift = std::clamp<int>(std::bit_width(bytes.hi - bytes.lo - 1) + 1, first_shift, last_shift);
  levels[shift].insert(shift, bytes, who, oldest, untold);
  used |= std::uint64_t{1} << shift;
}

void tracker::table::remove_covered(const footprint &bytes, const job *but) noexcept {
  for (std::uint64_t left = used; left; left &= left - 1) {
    const int shift = std::countr_zero(left);
    levels[shift].remove_covered(shift, bytes, but);
  }
}

void tracker::add(job &next, const access *accesses, std::size_t count, std::uint32_t oldest,
                  const untold_failures &untold) {
  bool covered = false;
  // What must have succeeded first: of two orders after the same job only the first is kept.
  for (std::size_t i = 0; i < count; ++i)
    if (accesses[i].reads) writers_.order({accesses[i].bytes, next, true, oldest, untold});
  for (std::size_t i = 0; i < count; ++i) {
    if (!accesses[i].writes) continue;
    covered = writers_.order({accesses[i].bytes, next, false, oldest, untold}) || covered;
    readers_.order({accesses[i].bytes, next, false, oldest, untold});
    next.writes_tracked = true;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (accesses[i].reads) readers_.insert(accesses[i].bytes, next, oldest, untold);
    if (accesses[i].writes) writers_.insert(accesses[i].bytes, next, oldest, untold);
  }
  // Whoever comes after this job comes after those whose bytes it covers, and reads its bytes, not theirs. Last, when
  // nothing can throw any more.
  for (std::size_t i = 0; covered && i < count; ++i)
    if (accesses[i].writes && accesses[i].exact) writers_.remove_covered(accesses[i].bytes, &next);
}

void tracker::forget(const void *memory, std::uint64_t bytes) noexcept {
  if (bytes == 0) return;
  const auto size = static_cast<std::int64_t>(bytes);
  writers_.remove_covered(footprint::rectangle(memory, size, 1, size), nullptr);
}

}  // namespace sg
