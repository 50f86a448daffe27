// SPDX-License-Identifier: Apache-2.0
// Which jobs in flight touch which memory, so that a new one is ordered after those it conflicts with.
//
// Footprints are kept by size: level L, an odd number, holds those of 2^(L-3) < bytes <= 2^(L-1) in a hash table of
// cells of 2^L bytes, so each is in one cell or two, and a look-up reads few. Writers and readers have separate tables:
// a reader looks up writers only. A level's entries are in a ring in order of submission, so entries of completed
// epochs are removed together, without being read. Other entries are removed when a look-up finds their job completed,
// when a later job writes all of their bytes, or when the ring is full; entries of failed jobs stay until the
// application has observed the failure.
#pragma once

#include <cstdint>
#include <memory>

#include "run/job/job.hpp"
#include "run/job/unobserved_failures.hpp"
#include "run/order/footprint.hpp"

namespace sg {

// Memory that a job reads or writes.
struct access {
  footprint bytes;
  bool writes = false;
  bool reads = true;  // a written operand that is also read (beta != 0)
  bool exact = true;  // otherwise some of the bytes may not be touched
};

// Not thread-safe: the context's submission lock covers it.
class tracker {
 public:
  // Orders `next` after every job in flight that conflicts with `accesses`, and remembers them. `oldest`: all jobs of
  // epochs before this one have ended, and when on the device's clock does not matter; so they need no look, which
  // would find them in no cache. `next` fails if it reads what a job of the unobserved failures was to write. Throws
  // std::bad_alloc; the caller then drops the job, and what was remembered of it is swept like that of any job that has
  // ended.
  void add(job &next, const access *accesses, std::size_t count, std::uint32_t oldest,
           const unobserved_failures &unobserved);
  // Forgets failed writers of that memory, which no job in flight uses.
  void forget(const void *memory, std::uint64_t bytes) noexcept;

 private:
  // State at a submission.
  struct moment {
    std::uint32_t oldest;
    const unobserved_failures &unobserved;
  };

  struct alignas(64) entry {  // without initialisers: rings are made of many
    footprint bytes;
    job *accessor;            // nullptr: no later job is ordered after it
    std::uint32_t behind[2];  // links: what came before it in the bucket of its first cell, and of its second
    std::uint32_t epoch;
    std::uint16_t incarnation;
    bool completed() const noexcept { return accessor->incarnation() != incarnation || accessor->done(); }
    // All jobs of its epoch have ended: known without a look at this one, which another core wrote last.
    bool is_before(std::uint32_t oldest) const noexcept { return static_cast<std::int32_t>(epoch - oldest) < 0; }
    bool is_of(const job *one) const noexcept { return accessor == one && incarnation == one->incarnation(); }
    std::uint64_t cause(const unobserved_failures &unobserved) const noexcept {  // of its failure; it has ended
      return unobserved.none() ? 0 : unobserved.cause_of({accessor, epoch, incarnation});
    }
    bool is_forgotten(const moment &now) const noexcept {
      return !accessor || (is_before(now.oldest) && cause(now.unobserved) == 0);
    }
  };
  static_assert(sizeof(entry) == 64, "an entry is to be one cache line");

  // What a new job does with some bytes.
  struct demand {
    const footprint &bytes;
    job &next;
    bool reads;  // it fails when a writer of them does
    const moment &now;
  };

  // Footprints of one size.
  class alignas(64) level {
   public:
    bool is_apart_from(const footprint &bytes) const noexcept { return bytes.lo >= hi_ || bytes.hi <= lo_; }
    bool is_full() const noexcept { return twice_count_ == 2 * size_; }
    void make_room(const moment &now);
    void insert(const footprint &bytes, job &accessor) noexcept;
    bool order(int shift, const demand &wanted);  // true: it covers others
    // Removes what is covered by `bytes` and is not of `but`.
    void remove_covered(int shift, const footprint &bytes, const job *but) noexcept;

   private:
    // Entries are numbered, by twos; a link is an entry's number and in its lowest bit which of its cells is meant.
    entry &at(std::uint32_t link) noexcept { return ring_[(link >> 1) & (size_ - 1)]; }
    bool is_there(std::uint32_t link) const noexcept { return link - first_ < twice_count_; }
    std::uint32_t no_link() const noexcept { return first_ - 1; }
    std::uint32_t &bucket(std::uintptr_t cell) noexcept;
    template <class Visit>
    void each_entry(std::uint32_t &head, Visit &&leaves);
    template <class Visit>
    void each_near(int shift, const footprint &bytes, Visit &&leaves);
    bool forget_all(const moment &now) noexcept;
    void link(int shift) noexcept;
    void reach(const footprint &bytes) noexcept {
      lo_ = std::min(lo_, bytes.lo);
      hi_ = std::max(hi_, bytes.hi);
    }

    // What all footprints lie within: often enough to say that one more meets none of them.
    std::uintptr_t lo_ = UINTPTR_MAX, hi_ = 0;
    // Numbers in use: from this one on, so many. They go round, for the first time soon: that is no rare event.
    std::uint32_t first_ = 0u - 4096, twice_count_ = 0;
    std::uint32_t twice_unlinked_ = 0;  // the latest of them: in no bucket yet
    std::uint32_t size_ = 0;            // of the ring, and of the buckets: 0, or a power of two
    std::uint32_t latest_epoch_ = 0;
    std::unique_ptr<entry[]> ring_;
    std::unique_ptr<std::uint32_t[]> heads_;  // a link for each bucket, perhaps to an entry that is gone
  };

  struct table {
    static constexpr int first_shift = 7, last_shift = 63;  // both odd
    level levels[last_shift + 1];
    std::uint64_t used = 0;  // bit s: levels[s] has ever had entries
    bool order(const footprint &bytes, job &next, bool reads, const moment &now);
    void insert(const footprint &bytes, job &accessor, const moment &now);
    void remove_covered(const footprint &bytes, const job *but) noexcept;
  };

  table writers_, readers_;
};

}  // namespace sg
