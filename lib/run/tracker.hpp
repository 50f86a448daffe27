// SPDX-License-Identifier: Apache-2.0
// Which jobs in flight touch which memory, so that a new one is ordered after those it conflicts with.
//
// Footprints are kept by size: level L holds those of 2^(L-2) < bytes <= 2^(L-1) in a hash table of cells of 2^L bytes, so
// each lies in one cell or in two, and a look-up reads few. Writers and readers have tables of their own: a reader asks the
// writers' only. Entries of jobs that have ended go when they are met, or when a table would grow.
#pragma once

#include <cstdint>
#include <vector>

#include "run/footprint.hpp"
#include "run/job.hpp"

namespace sg {

// Memory that a job reads or writes.
struct access {
  footprint bytes;
  bool writes = false;
  bool reads = true;  // a written operand that is also read (beta != 0)
};

// Not thread-safe: the context's submission lock covers it.
class tracker {
 public:
  // Orders `next` after every job in flight that conflicts with `accesses`, and remembers them. `oldest`: all jobs of
  // generations before this one have ended, and when on the device's clock does not matter; so they need no look, which
  // would find them in no cache. Throws std::bad_alloc; the caller then drops the job, and what was remembered of it is
  // swept like that of any job that has ended.
  void add(job &next, const access *accesses, std::size_t count, std::uint32_t oldest);

 private:
  struct entry {
    footprint bytes;
    std::uintptr_t cell = 0;
    job *who = nullptr;
    std::uint16_t incarnation = 0;
    std::uint32_t generation = 0;
    std::int32_t next = -1;  // in the bucket, or in the free list
    bool ended() const noexcept { return who->incarnation() != incarnation || who->done(); }
  };

  // Footprints of one size: a hash table from cells to entries.
  class level {
   public:
    void insert(int shift, const footprint &bytes, job &who);
    void order(int shift, const footprint &bytes, job &next, bool needs_success, std::uint32_t oldest);

   private:
    std::int32_t &bucket(std::uintptr_t cell) noexcept;
    void order_bucket(std::int32_t &head, const footprint &bytes, job &next, bool needs_success, std::uint32_t oldest);
    void make_room();

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
    void order(const footprint &bytes, job &next, bool needs_success, std::uint32_t oldest);
    void insert(const footprint &bytes, job &who);
  };

  table writers_, readers_;
};

}  // namespace sg
