// SPDX-License-Identifier: Apache-2.0
// The memory accesses of jobs in flight, by which a new job is ordered after those it conflicts with.
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
#include "run/order/access.hpp"
#include "run/order/footprint.hpp"

namespace sg {

// Guarded by the context's submission lock.
class tracker {
 public:
  // Orders `next` after every job in flight that conflicts with `accesses`, and records them. All jobs of epochs before
  // `oldest` have completed, at any time of the device's clock, so their records, which are in no cache, need not be
  // read. `next` fails if it reads memory that a job with an unobserved failure should have written. Throws
  // std::bad_alloc; the caller then drops the job, and its entries are removed like those of a completed job.
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

  struct alignas(64) entry {  // no initialisers: rings have many entries
    footprint bytes;
    job *accessor;            // nullptr: no later job is ordered after it
    std::uint32_t behind[2];  // links to earlier entries in the buckets of its first and second cell
    std::uint32_t epoch;
    std::uint16_t incarnation;
    bool completed() const noexcept { return accessor->incarnation() != incarnation || accessor->done(); }
    // All jobs of its epoch have completed: known without reading the record, which another core wrote last.
    bool is_before(std::uint32_t oldest) const noexcept { return static_cast<std::int32_t>(epoch - oldest) < 0; }
    bool is_of(const job *one) const noexcept { return accessor == one && incarnation == one->incarnation(); }
    unobserved_failures::use use() const noexcept { return {accessor, epoch, incarnation}; }
    // Whether the job, which has completed, has an unobserved failure.
    bool has_failed(const unobserved_failures &unobserved) const noexcept {
      return !unobserved.none() && unobserved.has(use());
    }
    bool is_forgotten(const moment &now) const noexcept {
      return !accessor || (is_before(now.oldest) && !has_failed(now.unobserved));
    }
  };
  static_assert(sizeof(entry) == 64, "an entry is to be one cache line");

  // A new job's access to some bytes.
  struct demand {
    const footprint &bytes;
    job &next;
    bool reads;  // the job fails if a writer of them fails
    const moment &now;
  };

  // A write of a new job, and all of its accesses; `of`: nullptr if no job writes, and the memory has a new owner.
  struct new_write {
    const footprint &bytes;
    const job *of;
    const access *all;
    std::size_t count;
    // Of a completed, failed job also what several accesses cover together.
    bool covers(const entry &e) const noexcept;
  };

  // Footprints of one size.
  class alignas(64) level {
   public:
    bool is_disjoint_from(const footprint &bytes) const noexcept { return bytes.lo >= hi_ || bytes.hi <= lo_; }
    bool is_full() const noexcept { return twice_count_ == 2 * size_; }
    void make_room(const moment &now);
    void insert(const footprint &bytes, job &accessor) noexcept;
    // True: it covers other entries, or meets some of failed jobs.
    bool order(int shift, const demand &wanted);
    // Removes entries of other jobs that the new write covers.
    void remove_covered(int shift, const new_write &by) noexcept;

   private:
    // Entry numbers count by twos; a link is an entry's number, and its lowest bit selects one of its two cells.
    entry &at(std::uint32_t link) noexcept { return ring_[(link >> 1) & (size_ - 1)]; }
    bool is_valid(std::uint32_t link) const noexcept { return link - first_ < twice_count_; }
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

    // Bounds of all footprints: they often suffice to rule out an overlap.
    std::uintptr_t lo_ = UINTPTR_MAX, hi_ = 0;
    // Numbers in use: `twice_count_` from `first_` on. They wrap; the first wrap is early, so that it is well tested.
    std::uint32_t first_ = 0u - 4096, twice_count_ = 0;
    std::uint32_t twice_unlinked_ = 0;  // the latest entries, not in a bucket yet
    std::uint32_t size_ = 0;            // of the ring, and of the buckets: 0, or a power of two
    std::uint32_t latest_epoch_ = 0;
    std::unique_ptr<entry[]> ring_;
    std::unique_ptr<std::uint32_t[]> heads_;  // a link for each bucket, perhaps to a removed entry
  };

  struct table {
    static constexpr int first_shift = 7, last_shift = 63;  // both odd
    level levels[last_shift + 1];
    std::uint64_t used = 0;  // bit s: levels[s] has ever had entries
    bool order(const footprint &bytes, job &next, bool reads, const moment &now);
    void insert(const footprint &bytes, job &accessor, const moment &now);
    void remove_covered(const new_write &by) noexcept;
  };

  table writers_, readers_;
};

}  // namespace sg
