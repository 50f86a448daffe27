// SPDX-License-Identifier: Apache-2.0
// Builds schedules of GEMMs. Their parameters are A, B, C and the bias of each problem, in this order.
#pragma once

#include <span>

#include "plan/gemm/resident/problem.hpp"
#include "plan/schedule/schedule_builder.hpp"

namespace sg {

// Whether the problem reads or writes any host memory.
bool touches_host(const problem &p) noexcept;

// The stored blocks of A with op(A)'s rows `m` and columns `k`, of B with op(B)'s rows `k` and columns `n`, and of C.
block block_of_a(const problem &p, range m, range k);
block block_of_b(const problem &p, range k, range n);
inline block block_of_c(range m, range n) { return {m.first, n.first, m.size, n.size}; }
// The block of the bias for a block of C; an item of one row and one column has one value in any case.
inline block block_of_bias(const problem &p, block c) {
  return p.bias.rows == p.m && p.bias.cols == 1 ? block{c.row, 0, c.rows, 1} : block{0, c.col, 1, c.cols};
}

// The role of beta in the first command that writes a part of C.
inline scalar_role first_beta(const problem &p) { return p.beta_zero ? scalar_role::zero : scalar_role::job; }

class gemm_builder : public schedule_builder {
 public:
  explicit gemm_builder(std::span<const problem> problems);

  const problem &of(std::int32_t group) const { return problems_[static_cast<std::size_t>(group)]; }

  view operand_view(std::int32_t group, operand_name name, range items, block part) const {
    return part_of(parameter_of(group, name), items, part);
  }

  // A GEMM with the shapes of its problem; the caller adds views and scalars.
  command gemm(std::int32_t group, range m, range n, range k, std::uint16_t lane_index) const;

  // Sets the epilogue of the last command that writes the block of C in these items; the bias is on the device.
  void finish_sums(command &last, range items, block c) const;

 private:
  std::vector<problem> problems_;
};

}  // namespace sg
