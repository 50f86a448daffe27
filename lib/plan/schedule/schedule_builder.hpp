// SPDX-License-Identifier: Apache-2.0
// Shared by the builders of schedules: parameters, buffers in arenas, views, commands.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/schedule/operand.hpp"
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

inline bool on_host(const operand &x) noexcept { return x.space != SG_MEMORY_DEVICE; }
inline bool is_shared(const operand &x) noexcept { return !x.pointer_array && x.item_stride == 0; }

// An operand that is bound when the schedule is run. One without elements is missing.
struct parameter {
  operand stored;
  const char *name = "";  // for descriptions: a literal
  bool is_result = false;
  std::int64_t batch = 1;
};

// The product of two matrices as one command: c = alpha * op_a(a) * op_b(b) + beta * c.
struct product {
  std::int64_t m = 0, n = 0, k = 0;
  sg_transpose op_a = SG_TRANSPOSE_N, op_b = SG_TRANSPOSE_N;
  sg_compute compute = SG_COMPUTE_EXACT;
  scalar_role alpha = scalar_role::job, beta = scalar_role::zero;
};

class schedule_builder {
 public:
  // Appends a parameter, before all other buffers; returns its index, which is also its buffer's.
  std::int32_t add_parameter(const parameter &x);
  const parameter &parameter_at(std::int32_t index) const { return parameters_[static_cast<std::size_t>(index)]; }
  const operand &operand_at(std::int32_t index) const { return parameter_at(index).stored; }
  sg_dtype type_of(std::int32_t buffer) const { return s_.buffers[static_cast<std::size_t>(buffer)].type; }

  // Allocates in an arena, aligned to 256 bytes; returns the buffer's index.
  std::int32_t add_device_buffer(sg_dtype type, std::int64_t bytes, std::int64_t item_stride = 0);
  std::int32_t add_staging_buffer(sg_dtype type, std::int64_t bytes);
  // A buffer with a given offset, which its arena grows to hold, or a parameter of another schedule.
  std::int32_t add_placed_buffer(const buffer &placed);
  // The same bytes with another type or item stride.
  std::int32_t add_alias(std::int32_t buffer, sg_dtype type, std::int64_t item_stride = 0);

  // A block of a parameter, in each of some items.
  view part_of(std::int32_t parameter, range items, block part) const;

  static command multiply(const product &what, std::uint16_t lane_index, std::int32_t group = 0);
  // C = beta * C on a part of C.
  static command scale(view c, scalar_role beta, std::uint16_t lane_index, std::int32_t group = 0);

  // Room for so many commands.
  void reserve(std::size_t commands) { s_.commands.reserve(commands); }
  // Appends a command. Of the waits only the latest of each other ordered lane is kept.
  std::uint32_t add(command c, std::span<const std::uint32_t> waits = {});
  const command &command_at(std::uint32_t index) const { return s_.commands[index]; }
  // Number of workers that may pack and unpack.
  void use_workers(std::int64_t count) { s_.lanes[int(lane_kind::staging)] = std::uint16_t(count); }
  // Adds a command to a list that keeps the latest of each ordered lane.
  void merge(std::vector<std::uint32_t> &list, std::uint32_t index) const;
  void add_flops(double flops) { s_.flops += flops; }

  schedule finish(std::string strategy);

 private:
  std::vector<parameter> parameters_;
  schedule s_;
  std::vector<std::uint32_t> scratch_;
};

}  // namespace sg
