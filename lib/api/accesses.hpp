// SPDX-License-Identifier: Apache-2.0
// What checked products read and write, and the rule that nothing which is written overlaps anything else.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "api/conflict.hpp"
#include "api/problem_of.hpp"
#include "run/order/tracker.hpp"

namespace sg {

// What a product without pointer arrays reads and writes, put into an array of four; their number.
std::size_t list_accesses(const checked_gemm &g, access *out);

// What any number of products read and write. Where an operand begins at the end of its predecessor's, both are one
// access: a group whose matrices lie behind each other costs its submitter few.
class access_list {
 public:
  void add(const checked_gemm &g);
  void add(const access &next, std::size_t which);  // of an operand: 0 to 3, A, B, C and the bias
  void reserve(std::size_t count) { all_.reserve(count); }
  const access *data() const noexcept { return all_.data(); }
  std::size_t size() const noexcept { return all_.size(); }

 private:
  std::vector<access> all_;
  std::array<std::size_t, operands_of_problem> latest_{};  // the number in all_ of each operand's latest; 0: none yet
};

// Throws when C overlaps an input or the bias, whichever item of either it is, or two items of its pointer array
// overlap. `name`: the descriptor's; `by_rows`: the caller's C is row major, so that A and B have changed places.
void check_overlap(const checked_gemm &g, const char *name, bool by_rows);

// What the products of a group read and write, each product added in turn.
class group_accesses {
 public:
  void reserve(std::size_t gemms);
  void add(const checked_gemm &g);
  void add(const access *accesses, std::size_t count);  // of A, B, C and the bias, as far as it has them
  // Throws when what one product writes overlaps any operand of another. Once, when all have been added.
  void check_apart();
  const access_list &list() const noexcept { return list_; }

 private:
  void add(const access &a, std::size_t which);

  access_list list_;
  std::array<std::vector<owned_bytes>, operands_of_problem> bytes_;  // by operand
  std::size_t gemms_ = 0;
};

}  // namespace sg
