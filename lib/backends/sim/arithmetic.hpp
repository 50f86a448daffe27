// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the simulated chip: sums in double precision (whole numbers exactly), rounded once when stored.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sg::sim {

// Where the items of an operand really lie: one after another, or each at a place of its own.
struct item_list {
  std::byte *first = nullptr;
  std::int64_t stride_bytes = 0;
  std::vector<std::byte *> places;

  std::byte *at(std::int64_t item) const { return places.empty() ? first + item * stride_bytes : places[item]; }
};

// Is there a product of two `in` matrices that is stored as `out`?
bool has_gemm(sg_dtype in, sg_dtype out) noexcept;

// Carries out `gemm`, whose own pointers are not used but for whether it has a bias.
void multiply(const sg_backend_gemm &gemm, const item_list &a, const item_list &b, const item_list &c,
              const item_list &bias);

// May parts of that type be summed into C of this one?
bool is_sum(sg_dtype part, sg_dtype out) noexcept;

// Carries out `reduce`, whose own pointers are not used. `parts` and `bias` may be NULL when there are none.
void add_parts(const sg_backend_reduce &reduce, const std::byte *parts, std::byte *c, const std::byte *bias);

}  // namespace sg::sim
