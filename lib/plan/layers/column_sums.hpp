// SPDX-License-Identifier: Apache-2.0
// The sums of dY's columns, the gradient of a bias, by reductions.
#pragma once

#include <algorithm>

#include "model/device_model.hpp"
#include "plan/schedule/schedule_builder.hpp"
#include "plan/schedule/transfer.hpp"

namespace sg {

// Rows in a group: each column has as many partial sums, which run in parallel. The partial sum r is that of row r of
// every group.
inline std::int64_t rows_of_group(std::int64_t rows) { return std::min<std::int64_t>(rows, 64); }
// Elements from one group of rows to the next, in dY stored with `ld`. by_columns: its rows are columns as stored.
inline std::int64_t stride_of_groups(bool by_columns, std::int64_t rows, std::int64_t ld) {
  return rows_of_group(rows) * (by_columns ? ld : 1);
}

// C = the sums of dY's columns (+ C).
struct sums_of_columns {
  std::int64_t rows = 0, columns = 0;  // of dY
  bool by_columns = true;              // rows of dY are columns as stored
  sg_dtype type = SG_DTYPE_F32, result_type = SG_DTYPE_F32;
  bool adds = false;       // by the beta of its group
  std::int32_t group = 0;  // of scalars
};

// The sums of some columns, on one compute lane, or rows on several ones. The partial sums of blocks of rows are added
// pairwise, but for a few at a time: those of 2^i times few blocks are kept in a level of their own until there are as
// many others.
class column_sums {
 public:
  // `blocks`: calls of add, at most; those of several lanes differ by one.
  column_sums(schedule_builder &builder, const sums_of_columns &of, range columns, std::int64_t blocks,
              std::uint16_t lane_index, int lanes = 1);

  // Adds a block of `rows` rows of dY, at least a group for the first call. `buffer` has groups of rows as items; all
  // columns of the rows begin at `offset` bytes. `lane`: which of its lanes; each has rows. Returns the last command.
  std::uint32_t add(std::int32_t buffer, std::int64_t offset, std::int64_t ld, std::int64_t rows,
                    std::span<const std::uint32_t> waits, int lane = 0);
  // C = beta * C + the sums, where all of C is at `offset` bytes of a buffer. Returns the command.
  std::uint32_t finish(std::int32_t buffer, std::int64_t offset, std::span<const std::uint32_t> waits);

 private:
  static constexpr std::int64_t few = 8;
  static std::int64_t levels_with(std::int64_t added) noexcept;
  view sums(std::int64_t level, std::int64_t levels, std::int64_t rows, int lane) const;
  void merge(std::int64_t first, std::int64_t levels, int lane);

  schedule_builder &builder_;
  sums_of_columns of_;
  range columns_;
  std::uint16_t lane_;  // the first
  int lanes_;
  std::int64_t width_, levels_;
  sg_dtype type_;
  std::int32_t buffer_ = -1, of_levels_ = -1;  // the partial sums; the same with levels as items
  std::vector<std::int64_t> added_;            // blocks, by lane
  std::vector<std::uint32_t> last_;
};

// C on the device: the caller's own, or a copy that is brought back at the end.
class bias_gradient {
 public:
  bias_gradient(schedule_builder &builder, std::int32_t result, bool adds, transfers &moves);
  // Appends the last reduction of each, and the copy.
  void finish(std::span<column_sums> sums);

 private:
  schedule_builder &builder_;
  std::int32_t result_;  // the parameter
  transfers &moves_;
  std::int32_t copy_ = -1;  // the buffer of the copy
  std::vector<std::uint32_t> ready_;
};

// A schedule of the sums alone, within `memory_limit`: dY is in the place of A of a GEMM, the result in that of C, for
// chain(). dY's items are groups of rows. Throws SG_STATUS_OUT_OF_MEMORY.
schedule build_column_sums(const sums_of_columns &of, const operand &dy, const operand &result,
                           const device_model &model, int lanes, std::int64_t memory_limit);

}  // namespace sg
