// SPDX-License-Identifier: Apache-2.0
// Which jobs in flight touch which memory, so that a new one is ordered after those it conflicts with.
//
// Footprints are kept by size: level L holds those of 2^(L-2) < bytes <= 2^(L-1) in a hash table of cells of 2^L bytes,
// so each lies in one cell or in two, and a look-up reads few. Writers and readers have tables of their own: a reader
// asks the writers' only. Entries of jobs that have ended go when they are met, or when a table would grow; those of
// jobs that failed stay until the program knows of it. A writer's entry goes too when a later job writes all of its
// bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "run/footprint.hpp"
#include "run/job.hpp"
#include "run/untold_failures.hpp"

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
  // generations before this one have ended, and when on the device's clock does not matter; so they need no look, which
  // would find them in no cache. `next` fails if it reads what a job of the untold failures was to write. Throws
  // std::bad_alloc; the caller then drops the job, and what was remembered of it is swept like that of any job that has
  // ended.
  void add(job &next, const access *accesses, std::size_t count, std::uint32_t oldest, const untold_failures &untold);
  // Forgets failed writers of that memory, which no job in flight uses.
  void forget(const void *memory, std::uint64_t bytes) noexcept;

 private:
  struct alignas(64) entry {
    footprint bytes;
    std::uintptr_t cell = 0;
    job *who = nullptr;
    std::uint16_t incarnation = 0;
    std::uint32_t generation = 0;
    std::int32_t next = -1;  // in the bucket, or in the free list
    bool ended() const noexcept { return who->incarnation() != incarnation || who->done(); }
    // All jobs of its generation have ended: known without a look at this one, which another core wrote last.
    bool is_before(std::uint32_t oldest) const noexcept { return static_cast<std::int32_t>(generation - oldest) < 0; }
    bool is_of(const job *one) const noexcept { return who == one && incarnation == one->incarnation(); }
    std::uint64_t cause(const untold_failures &untold) const noexcept {  // of its failure; it has ended
      return untold.none() ? 0 : untold.cause_of({who, generation, incarnation});
    }
  };

  // What a new job does with some bytes, and what is known when it comes.
  struct demand {
    footprint bytes;
    job &next;
    bool reads;  // it fails when a writer of them does
    std::uint32_t oldest;
    const untold_failures &untold;
  };

  static_assert(sizeof(entry) == 64, "an entry is to be one cache line");

  // Footprints of one size: a hash table from cells to entries.
  class level {
   public:
    void insert(int shift, const footprint &bytes, job &who, std::uint32_t oldest, const untold_failures &untold);
    bool order(int shift, const demand &wanted);  // true: it covers others
    // Removes what is covered by `bytes` and is not of `but`.
    void remove_covered(int shift, const footprint &bytes, const job *but) noexcept;

   private:
    std::int32_t &bucket(std::uintptr_t cell) noexcept;
    template <class Visit>
    void each_bucket(int shift, const footprint &bytes, Visit &&visit);
    bool order_bucket(std::int32_t &head, const demand &wanted);
    void free_entry(std::int32_t *link) noexcept;
    void make_room(std::uint32_t oldest, const untold_failures &untold);

    std::vector<std::int32_t> heads_;  // a power of two
    std::vector<entry> entries_;
    std::int32_t free_ = -1;
    // What all footprints lie within: often enough to say that one more meets none of them.
    std::uintptr_t lo_ = UINTPTR_MAX, hi_ = 0;
  };

  struct table {
    static constexpr int first_shift = 10, last_shift = 63;
    level levels[last_shift + 1];
    std::uint64_t used = 0;  // bit s: levels[s] has ever had entries
    bool order(const demand &wanted);
    void insert(const footprint &bytes, job &who, std::uint32_t oldest, const untold_failures &untold);
    void remove_covered(const footprint &bytes, const job *but) noexcept;
  };

  table writers_, readers_;
};

}  // namespace sg
