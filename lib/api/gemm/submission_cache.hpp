// SPDX-License-Identifier: Apache-2.0
// The submission cache: the front cache of each thread, by descriptor. A GEMM or a group that differs from a cached one
// in its addresses only skips validation and the look-up of its program, which are more than a third of a submission's
// instructions. It holds 64 GEMMs, because a server's requests have some dozen shapes, and 4 groups, which layers use
// alternately. It owns references to programs; a program refers to no cache.
#pragma once

#include <streamgemm/gemm.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "api/gemm/accesses.hpp"
#include "api/gemm/problem_of.hpp"
#include "ops/binding.hpp"
#include "run/order/tracker.hpp"
#include "run/program/program.hpp"

namespace sg {

class context;

// What chose the program of a submission: the planner, for throughput or for the latency of one (plan_request), or the
// caller, by a plan made ahead, whose program no entry keeps.
struct chosen_by {
  std::uint64_t plan = 0;  // its number; 0: the planner
  bool latency = false;

  bool operator==(const chosen_by &) const = default;
};

// A recently submitted GEMM of the thread.
class cached_gemm {
 public:
  // The calling thread's entry of the same form; nullptr: none. `by`: what chose its program.
  static cached_gemm *find(const context &on, const sg_gemm_desc &desc, chosen_by by) noexcept;
  // An entry of the calling thread for a new form; nullptr: the thread has no cache (thread_owned).
  static cached_gemm *entry_for(const context &on, const sg_gemm_desc &desc, chosen_by by) noexcept;

  // Whether `desc` differs from this GEMM in its addresses only.
  bool has_form_of(const context &on, const sg_gemm_desc &desc, chosen_by by = {}) const noexcept;
  // The operand addresses of a GEMM of this form, and its accesses.
  struct instance {
    binding::head where;
    access accesses[4];
  };
  // The instance for `desc`, of this form; empty if its addresses need full validation.
  std::optional<instance> rebind(const context &on, const sg_gemm_desc &desc) const noexcept;
  int operand_count() const noexcept { return count_; }
  const std::shared_ptr<const sg::program> &program() const noexcept { return program_; }

  // Stores the checked `desc`. False: it cannot be cached.
  bool remember(const context &on, const sg_gemm_desc &desc, const checked_gemm &gemm, chosen_by by = {});
  // Stores its program.
  void keep(const std::shared_ptr<const sg::program> &compiled) noexcept { program_ = compiled; }
  static bool keeps(const sg::program &compiled) noexcept;
  // Whether the two differ in their addresses only.
  bool is_same(const cached_gemm &other) const noexcept;

 private:
  std::uint64_t context_ = 0;  // its context's number; 0: none
  chosen_by by_;
  std::uint64_t mixed_ = 0;          // hash of its fields
  alignas(16) sg_gemm_desc form_{};  // addresses ignored; read by vector instructions
  int count_ = 3;                    // operands: A, B and C of the column-major problem, and its bias if it has one
  instance at_null_;                 // for operands at address 0
  std::int64_t bytes_[4] = {};
  std::uintptr_t unaligned_[4] = {};  // address bits that must be 0
  memory_space spaces_[4] = {};
  mutable memory_map::memo found_[4];  // latest memory spaces of its operands
  std::shared_ptr<const sg::program> program_;
};

// A recently submitted group of the thread.
class cached_group {
 public:
  // The calling thread's cached group for `descs`, if their addresses need no validation except for overlaps between
  // GEMMs; then also their addresses and accesses. nullptr: none. Throws std::bad_alloc.
  static const cached_group *find(const context &on, const sg_gemm_desc *descs, std::size_t count, binding &where,
                                  group_accesses &accesses);
  const std::shared_ptr<const sg::program> &program() const noexcept { return program_; }

  // Adds the next GEMM of a new group, checked. Throws std::bad_alloc.
  void add(const context &on, const sg_gemm_desc &desc, const checked_gemm &gemm);
  // Stores a complete group whose program was a free choice of the planner, unless a descriptor cannot be cached or the
  // group is large.
  static void remember(cached_group &&made, const std::shared_ptr<const sg::program> &compiled) noexcept;

 private:
  static constexpr std::size_t most_distinct = 64, most_gemms = 4096;

  bool rebind(const context &on, const sg_gemm_desc *descs, binding &where, group_accesses &accesses) const;

  std::vector<cached_gemm> distinct_;
  std::vector<std::uint8_t> which_;  // by GEMM: its index in distinct_
  bool is_known_ = true;             // each GEMM so far can be cached
  std::shared_ptr<const sg::program> program_;
};

}  // namespace sg
