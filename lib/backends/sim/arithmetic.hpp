// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the simulated chip: sums in the accumulator's type (integers modulo 2^32), rounded once when
// stored.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sg::sim {

// The stored location of an operand's items: contiguous, or each at its own address.
struct item_list {
  std::byte *first = nullptr;
  std::int64_t stride_bytes = 0;
  std::vector<std::byte *> pointers;

  std::byte *at(std::int64_t item) const { return pointers.empty() ? first + item * stride_bytes : pointers[item]; }
};

// Executes `gemm` on these operands; of its own pointers only the bias is tested for NULL.
void multiply(const sg_backend_gemm &gemm, const item_list &a, const item_list &b, const item_list &c,
              const item_list &bias);

// Executes `reduce` on these operands, not on its own pointers. `parts` and `bias` may be NULL if there are none.
void add_parts(const sg_backend_reduce &reduce, const std::byte *parts, std::byte *c, const std::byte *bias);

}  // namespace sg::sim
