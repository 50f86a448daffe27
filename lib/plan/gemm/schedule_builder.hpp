// SPDX-License-Identifier: Apache-2.0
// Shared by the builders of schedules: allocates buffers in arenas, makes views of operands, appends commands.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/gemm/problem.hpp"
#include "plan/schedule/schedule.hpp"

namespace sg {

// Little memory and small tiles make many commands. Limit for the planner's own splits,
inline constexpr std::int64_t most_commands = 200'000;
// and for what the caller's operands and hints cause (single items, chunks of pageable memory, tiles).
inline constexpr std::int64_t most_asked_commands = 1'000'000;

// Part of a matrix as stored.
struct block {
  std::int64_t row = 0, col = 0, rows = 0, cols = 0;
};

// A range of one dimension.
struct range {
  std::int64_t first = 0, size = 0;
  std::int64_t end() const noexcept { return first + size; }
};

// Edges of parts are multiples of this, so that parts begin on cache lines and full tiles if the matrix does.
inline constexpr std::int64_t grain = 16;

// At most `parts` ranges of nearly equal size that cover [0, total); inner edges are multiples of `grain` unless a
// range would become empty.
std::vector<range> cut(std::int64_t total, std::int64_t parts, std::int64_t grain = 1);

inline const operand &operand_of(const problem &p, operand_name name) {
  switch (name) {
    case operand_name::a: return p.a;
    case operand_name::b: return p.b;
    case operand_name::c: break;
    case operand_name::bias: return p.bias;
  }
  return p.c;
}
inline bool on_host(const operand &x) noexcept { return x.space != SG_MEMORY_DEVICE; }
inline bool is_shared(const operand &x) noexcept { return !x.pointer_array && x.item_stride == 0; }
// Does the problem read or write any host memory?
bool touches_host(const problem &p) noexcept;

// The stored block of A with op(A)'s rows `m` and columns `k`; likewise of B; and of C.
block block_of_a(const problem &p, range m, range k);
block block_of_b(const problem &p, range k, range n);
inline block block_of_c(range m, range n) { return {m.first, n.first, m.size, n.size}; }
// The block of the bias for a block of C; an item of one row and one column has one value in any case.
inline block block_of_bias(const problem &p, block c) {
  return p.bias.rows == p.m && p.bias.cols == 1 ? block{c.row, 0, c.rows, 1} : block{0, c.col, 1, c.cols};
}

// The role of beta in the first command that writes a part of C.
inline scalar_role first_beta(const problem &p) { return p.beta_zero ? scalar_role::zero : scalar_role::job; }

class schedule_builder {
 public:
  explicit schedule_builder(std::span<const problem> problems);

  const problem &of(std::int32_t group) const { return problems_[group]; }

  // Allocates in an arena, aligned to 256 bytes; returns the buffer's index.
  std::int32_t add_device_buffer(sg_dtype type, std::int64_t bytes, std::int64_t item_stride = 0);
  std::int32_t add_staging_buffer(sg_dtype type, std::int64_t bytes);
  // A buffer with a given offset; the arena grows to hold it.
  std::int32_t add_placed_buffer(const buffer &placed);
  // The same bytes with another type or item stride.
  std::int32_t add_alias(std::int32_t buffer, sg_dtype type, std::int64_t item_stride = 0);

  view operand_view(std::int32_t group, operand_name name, range items, block part) const;

  // A GEMM with the shapes of its problem; the caller adds views and scalars.
  command gemm(std::int32_t group, range m, range n, range k, std::uint16_t lane_index) const;
  // C = beta * C on a part of C.
  command scale(std::int32_t group, view c, scalar_role beta, std::uint16_t lane_index) const;

  // Sets the epilogue of the last command that writes the block of C in these items; the bias is on the device.
  void finish_sums(command &last, range items, block c) const;

  // Appends a command. Of the waits only the latest of each other ordered lane is kept.
  std::uint32_t add(command c, std::span<const std::uint32_t> waits = {});
  const command &command_at(std::uint32_t index) const { return s_.commands[index]; }
  // Number of workers that may pack and unpack.
  void use_workers(std::int64_t count) { s_.lanes[int(lane_kind::staging)] = std::uint16_t(count); }
  // Adds a command to a list that keeps the latest of each ordered lane.
  void merge(std::vector<std::uint32_t> &list, std::uint32_t index) const;

  schedule finish(std::string strategy);

 private:
  std::vector<problem> problems_;
  schedule s_;
  std::vector<std::uint32_t> scratch_;
};

}  // namespace sg
