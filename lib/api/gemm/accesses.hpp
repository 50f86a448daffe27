// SPDX-License-Identifier: Apache-2.0
// Memory accesses of checked GEMMs, and the rule that written memory overlaps no other operand.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "api/gemm/problem_of.hpp"
#include "api/operands/conflict.hpp"
#include "run/order/tracker.hpp"

namespace sg {

// Writes the accesses of a GEMM to an array of four, one for each operand, and returns their number; 0: an operand
// needs several.
std::size_t list_accesses(const checked_gemm &g, access *out);

// The accesses of any number of GEMMs. Adjacent operands of consecutive GEMMs are merged: a batch of contiguous
// matrices has few accesses.
class access_list {
 public:
  void add(const checked_gemm &g);
  void add(const access &next, std::size_t which);  // of an operand: 0 to 3, A, B, C and the bias
  void reserve(std::size_t count) { all_.reserve(count); }
  const access *data() const noexcept { return all_.data(); }
  std::size_t size() const noexcept { return all_.size(); }

 private:
  std::vector<access> all_;
  std::array<std::size_t, operands_of_problem> latest_{};  // the index in all_ of each operand's latest; 0: none yet
};

// Throws if C overlaps any item of an input or the bias, or if two items of its pointer array overlap. `name`: the
// descriptor's; `by_rows`: the caller's C is row major, so A and B are swapped.
void check_overlap(const checked_gemm &g, const char *name, bool by_rows, const gemm_names &names);

// The accesses of a group's GEMMs, added one by one.
class group_accesses {
 public:
  void reserve(std::size_t gemms);
  void add(const checked_gemm &g, std::size_t index);
  void add(const access *accesses, std::size_t count, std::size_t index);  // of A, B, C, the bias, as far as they exist
  // Throws if memory that one GEMM writes overlaps any operand of another. Call once, after all have been added.
  // `name`: the array of descriptors.
  void check_disjoint(const char *name);
  const access_list &list() const noexcept { return list_; }

 private:
  void add(const access &a, std::size_t which, std::size_t index);

  access_list list_;
  std::array<std::vector<owned_bytes>, operands_of_problem> bytes_;  // by operand; the owner is the GEMM's index
};

}  // namespace sg
