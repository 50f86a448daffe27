// SPDX-License-Identifier: Apache-2.0
#include "run/order/tracker.hpp"

#include <algorithm>
#include <bit>

namespace sg {

namespace {
constexpr std::uint32_t least_entries = 64;
}  // namespace

// Neighbouring cells have buckets in one cache line, because operands of consecutive jobs are often neighbours in
// memory.
inline std::uint32_t &tracker::level::bucket(std::uintptr_t cell) noexcept {
  constexpr std::uintptr_t neighbours = 16;
  return heads_[((cell / neighbours * 0x9E3779B97F4A7C15ull >> 24) ^ cell % neighbours) & (size_ - 1)];
}

// Links the entries since the latest look-up. Linking is deferred: where operands are disjoint from those of all jobs
// in flight no look-up happens, and entries are forgotten unlinked. A head may be left from an earlier round of
// numbers: an entry's links lead to earlier entries only.
void tracker::level::link(int shift) noexcept {
  const std::uint32_t end = first_ + twice_count_;
  for (std::uint32_t number = end - twice_unlinked_; number != end; number += 2) {
    entry &e = at(number);
    const auto enter = [&](std::uint32_t &head, std::uint32_t side) {
      e.behind[side] = head - first_ < number + side - first_ ? head : no_link();  // both cells may share a bucket
      head = number + side;
    };
    const std::uintptr_t first = e.bytes.lo >> shift, last = (e.bytes.hi - 1) >> shift;
    enter(bucket(first), 0);
    if (first != last) enter(bucket(last), 1);
  }
  twice_unlinked_ = 0;
}

// True when the latest epoch has completed without unobserved failures.
inline bool tracker::level::forget_all(const moment &now) noexcept {
  if (static_cast<std::int32_t>(latest_epoch_ - now.oldest) >= 0 || !now.unobserved.none()) return false;
  first_ += twice_count_;
  twice_count_ = twice_unlinked_ = 0;
  lo_ = UINTPTR_MAX;
  hi_ = 0;
  return true;
}

// Forgets the oldest completed entries, or, if those are less than half of the ring, all completed entries; doubles the
// ring if these are less than half too. Out of memory: no change.
void tracker::level::make_room(const moment &now) {
  while (twice_count_ > 0 && at(first_).is_forgotten(now)) {
    first_ += 2;
    twice_count_ -= 2;
  }
  twice_unlinked_ = std::min(twice_unlinked_, twice_count_);
  if (size_ > 0 && twice_count_ <= size_) return;
  const auto stays = [&](const entry &e) {
    return !e.is_forgotten(now) && (!(e.is_before(now.oldest) || e.completed()) || e.has_failed(now.unobserved));
  };
  std::uint32_t living = 0;
  for (std::uint32_t i = 0; i < twice_count_; i += 2) living += stays(at(first_ + i));
  const std::uint32_t size = std::max({least_entries, size_, std::bit_ceil(living * 2 + 2)});
  std::unique_ptr<entry[]> ring;
  std::unique_ptr<std::uint32_t[]> heads;
  if (size > size_) {
    ring = std::make_unique_for_overwrite<entry[]>(size);
    heads = std::make_unique_for_overwrite<std::uint32_t[]>(size);
  } else {
    std::fill_n(heads_.get(), size, no_link());
  }
  // Entries move towards the first, so the same ring can be used.
  const std::uint32_t mask = size - 1, before = twice_count_;
  entry *const to = ring ? ring.get() : ring_.get();
  std::uint32_t kept = first_;
  for (std::uint32_t i = 0; i < before; i += 2) {
    const entry &e = at(first_ + i);
    if (!stays(e)) continue;
    to[(kept >> 1) & mask] = e;
    kept += 2;
  }
  if (ring) {
    ring_ = std::move(ring);
    heads_ = std::move(heads);
    size_ = size;
    std::fill_n(heads_.get(), size, no_link());
  }
  twice_count_ = twice_unlinked_ = kept - first_;
  lo_ = UINTPTR_MAX;
  hi_ = 0;
  for (std::uint32_t number = first_; number != kept; number += 2) reach(at(number).bytes);
}

// The ring has room.
inline void tracker::level::insert(const footprint &bytes, job &accessor) noexcept {
  const std::uint32_t number = first_ + twice_count_;
  entry &e = at(number);
  __builtin_prefetch(&at(number + 4), 1);  // another submitter's core may hold the line
  e.bytes = bytes;
  e.accessor = &accessor;
  e.epoch = latest_epoch_ = accessor.epoch;
  e.incarnation = accessor.incarnation();
  twice_count_ += 2;
  twice_unlinked_ += 2;
  reach(bytes);
}

// Visits one bucket, latest entry first; `leaves(entry)`: remove it from the bucket.
template <class Visit>
inline void tracker::level::each_entry(std::uint32_t &head, Visit &&leaves) {
  for (std::uint32_t *link = &head; is_valid(*link);) {
    entry &e = at(*link);
    std::uint32_t &next = e.behind[*link & 1];
    if (!e.accessor || leaves(e))
      *link = next;
    else
      link = &next;
  }
}

// Visits the buckets of the cells of `bytes`.
template <class Visit>
inline void tracker::level::each_near(int shift, const footprint &bytes, Visit &&leaves) {
  if (is_disjoint_from(bytes)) return;
  link(shift);
  const std::uintptr_t first = bytes.lo >> shift, last = (bytes.hi - 1) >> shift;
  if (last - first >= size_) {
    for (std::uint32_t i = 0; i < size_; ++i) each_entry(heads_[i], leaves);
    return;
  }
  for (std::uintptr_t cell = first; cell <= last; ++cell) each_entry(bucket(cell), leaves);
}

bool tracker::level::order(int shift, const demand &wanted) {
  if (forget_all(wanted.now)) return false;
  bool covered = false, meets_failed = false;
  each_near(shift, wanted.bytes, [&](entry &e) {
    const bool long_completed = e.is_before(wanted.now.oldest);
    const bool meets = overlap(e.bytes, wanted.bytes);
    if (!(long_completed || meets)) return false;
    if (long_completed || e.completed() || !wanted.next.order_after(*e.accessor, e.incarnation, wanted.reads)) {
      if (!long_completed) wanted.next.follows_completed(*e.accessor, e.incarnation);
      if (!e.has_failed(wanted.now.unobserved)) {
        e.accessor = nullptr;
        return true;
      }
      meets_failed = meets_failed || meets;
      if (wanted.reads && meets) {
        failure_causes causes;
        wanted.now.unobserved.add_causes_of(e.use(), causes);
        wanted.next.fail_dependency(causes);
      }
    }
    covered = covered || covers(wanted.bytes, e.bytes);
    return false;
  });
  return covered || meets_failed;
}

bool tracker::new_write::covers(const entry &e) const noexcept {
  if (sg::covers(bytes, e.bytes)) return true;
  if (!of || !e.completed()) return false;
  return !first_unwritten(e.bytes, {all, count});
}

void tracker::level::remove_covered(int shift, const new_write &by) noexcept {
  each_near(shift, by.bytes, [&](entry &e) {
    if ((by.of && e.is_of(by.of)) || !by.covers(e)) return false;
    e.accessor = nullptr;
    return true;
  });
}

inline bool tracker::table::order(const footprint &bytes, job &next, bool reads, const moment &now) {
  bool covered = false;
  for (std::uint64_t left = used; left; left &= left - 1) {
    const int shift = std::countr_zero(left);
    level &here = levels[shift];
    if (!here.is_disjoint_from(bytes)) covered = here.order(shift, {bytes, next, reads, now}) || covered;
  }
  return covered;
}

inline void tracker::table::insert(const footprint &bytes, job &accessor, const moment &now) {
  constexpr std::uintptr_t least = (std::uintptr_t{1} << (first_shift - 1)) - 1;
  const auto width = static_cast<int>(std::bit_width((bytes.hi - bytes.lo - 1) | least));
  const int shift = std::min(width + 1, last_shift) | 1;
  level &here = levels[shift];
  if (here.is_full()) {
    here.make_room(now);
    used |= std::uint64_t{1} << shift;
  }
  here.insert(bytes, accessor);
}

void tracker::table::remove_covered(const new_write &by) noexcept {
  for (std::uint64_t left = used; left; left &= left - 1) {
    const int shift = std::countr_zero(left);
    levels[shift].remove_covered(shift, by);
  }
}

void tracker::add(job &next, const access *accesses, std::size_t count, std::uint32_t oldest,
                  const unobserved_failures &unobserved) {
  const moment now{oldest, unobserved};
  bool covers_writers = false, covers_readers = false;
  // First the accesses that need the predecessor's success: of two orders after the same job only the first is kept.
  for (const access *a = accesses; a != accesses + count; ++a)
    if (a->reads) covers_writers = (writers_.order(a->bytes, next, true, now) && a->writes) || covers_writers;
  for (const access *a = accesses; a != accesses + count; ++a) {
    if (!a->writes) continue;
    if (!a->reads) covers_writers = writers_.order(a->bytes, next, false, now) || covers_writers;
    covers_readers = readers_.order(a->bytes, next, false, now) || covers_readers;
    next.writes_tracked = true;
  }
  for (const access *a = accesses; a != accesses + count; ++a)
    (a->writes ? writers_ : readers_).insert(a->bytes, next, now);
  // Later jobs are ordered after this one instead of the jobs whose bytes it covers. Last, when nothing can throw any
  // more.
  for (const access *a = accesses; a != accesses + count; ++a) {
    if (!a->writes || !a->exact) continue;
    const new_write by{a->bytes, &next, accesses, count};
    if (covers_writers) writers_.remove_covered(by);
    if (covers_readers) readers_.remove_covered(by);
  }
}

void tracker::forget(const void *memory, std::uint64_t bytes) noexcept {
  if (bytes == 0) return;
  const auto size = static_cast<std::int64_t>(bytes);
  writers_.remove_covered({footprint::rectangle(memory, size, 1, size), nullptr, nullptr, 0});
}

}  // namespace sg
