// SPDX-License-Identifier: Apache-2.0
// The submission cache: the front cache of each thread, by descriptor. A GEMM or a group that differs from a cached one
// in its addresses only skips validation and the look-up of its program, which are more than a third of a submission's
// instructions. It holds 64 GEMMs, because a server's requests come in some dozen shapes, and 4 groups, because layers
// use theirs in turn. It owns references to programs; a program refers to no cache.
#pragma once

#include <streamgemm/gemm.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "api/accesses.hpp"
#include "api/problem_of.hpp"
#include "ops/binding.hpp"
#include "run/order/tracker.hpp"
#include "run/program/program.hpp"

namespace sg {

class context;

// A GEMM that the thread has submitted lately.
class cached_gemm {
 public:
  // The calling thread's of the same form; nullptr when it has none. `latency`: as in plan_request.
  static cached_gemm *find(const context &on, const sg_gemm_desc &desc, bool latency) noexcept;
  // The calling thread's place for one of that form; nullptr when it has none (thread_owned).
  static cached_gemm *entry_for(const context &on, const sg_gemm_desc &desc, bool latency) noexcept;

  // Whether `desc` differs from this GEMM in its addresses only.
  bool has_form_of(const context &on, const sg_gemm_desc &desc, bool latency = false) const noexcept;
  // Addresses of the operands of a GEMM of this form, and its accesses.
  struct instance {
    problem_binding where;
    access accesses[4];
  };
  // That of `desc`, of this form; nothing when there is something to say to the caller of its addresses.
  std::optional<instance> again(const context &on, const sg_gemm_desc &desc) const noexcept;
  int operand_count() const noexcept { return count_; }
  const std::shared_ptr<const sg::program> &program() const noexcept { return program_; }

  // `product` is what `desc` was checked to be. False: its descriptor does not determine it.
  bool remember(const context &on, const sg_gemm_desc &desc, const checked_gemm &gemm, bool latency = false);
  // Its program, which is one of the planner's own choice, and of those that are worth to be kept.
  void keep(const std::shared_ptr<const sg::program> &compiled) noexcept { program_ = compiled; }
  static bool keeps(const sg::program &compiled) noexcept;
  // Whether the two differ in their addresses only.
  bool is_same(const cached_gemm &other) const noexcept;

 private:
  std::uint64_t context_ = 0;  // its number; 0: none
  bool latency_ = false;
  std::uint64_t mixed_ = 0;          // hash of its fields
  alignas(16) sg_gemm_desc form_{};  // its addresses mean nothing; read by vector instructions
  int count_ = 3;                    // operands: A, B and C of the column-major problem, and its bias if it has one
  instance at_null_;                 // as if each lay at address 0
  std::int64_t bytes_[4] = {};
  std::uintptr_t unaligned_[4] = {};  // address bits that are not set
  memory_space spaces_[4] = {};
  mutable memory_map::memo found_[4];  // where its operands were the last time
  std::shared_ptr<const sg::program> program_;
};

// A group that the thread has submitted lately.
class cached_group {
 public:
  // One of the calling thread's that `descs` are, at addresses that leave nothing to say to the caller but for what
  // they are to each other; then these, and what all touch. nullptr: there is none. Throws std::bad_alloc.
  static const cached_group *find(const context &on, const sg_gemm_desc *descs, std::size_t count, binding &where,
                                  group_accesses &accesses);
  const std::shared_ptr<const sg::program> &program() const noexcept { return program_; }

  // The next product of a group in the making, checked. Throws std::bad_alloc.
  void add(const context &on, const sg_gemm_desc &desc, const checked_gemm &gemm);
  // All have been added; their program is one of the planner's own choice. The calling thread remembers the group,
  // unless its descriptors do not determine it, or it is a large one.
  static void remember(cached_group &&made, const std::shared_ptr<const sg::program> &compiled) noexcept;

 private:
  static constexpr std::size_t most_distinct = 64, most_gemms = 4096;

  bool again(const context &on, const sg_gemm_desc *descs, binding &where, group_accesses &accesses) const;

  std::vector<cached_gemm> distinct_;
  std::vector<std::uint8_t> which_;  // of them, by product
  bool is_known_ = true;             // each GEMM so far is determined by its descriptor
  std::shared_ptr<const sg::program> program_;
};

}  // namespace sg
