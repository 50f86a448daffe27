// SPDX-License-Identifier: Apache-2.0
// Sums into rows of a table, on one thread: the rows of X are sorted by their indices, and those of one index are added
// in their order.
#include <algorithm>
#include <utility>

#include "backends/common/rows.hpp"
#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/simd/simd.hpp"
#include "backends/cpu/worker/poll.hpp"
#include "layers.hpp"

namespace sg::cpu {
namespace {

struct row_entry {
  std::int64_t row_of_table, row;
};

std::int64_t row_of_table(const sg_backend_scatter_add &what, std::int64_t i) noexcept {
  std::int64_t index = index_at(what.indices, i, what.index_bytes);
  if (what.from_end && index < 0) index += what.table_rows;
  return index >= 0 && index < what.table_rows ? index : -1;
}

// The rows of X that have a row of the table, by that and then by their order; returns their number, or -1 if the
// command is to stop. `starts`: memory for a number for each row of the table, or nullptr.
std::int64_t sort_rows(const sg_backend_scatter_add &what, row_entry *entries, std::int64_t *starts,
                       poll &end) noexcept {
  std::int64_t count = 0;
  if (starts == nullptr) {
    for (std::int64_t i = 0; i < what.rows; ++i) {
      if (const std::int64_t row = row_of_table(what, i); row >= 0) entries[count++] = {row, i};
      if (end.stops(1)) return -1;
    }
    std::sort(entries, entries + count, [](const row_entry &a, const row_entry &b) {
      return a.row_of_table != b.row_of_table ? a.row_of_table < b.row_of_table : a.row < b.row;
    });
    return count;
  }
  std::fill_n(starts, what.table_rows, 0);
  for (std::int64_t i = 0; i < what.rows; ++i) {
    if (const std::int64_t row = row_of_table(what, i); row >= 0) ++starts[row];
    if (end.stops(1)) return -1;
  }
  for (std::int64_t row = 0; row < what.table_rows; ++row) count += std::exchange(starts[row], count);
  for (std::int64_t i = 0; i < what.rows; ++i) {
    if (const std::int64_t row = row_of_table(what, i); row >= 0) entries[starts[row]++] = {row, i};
    if (end.stops(1)) return -1;
  }
  return count;
}

}  // namespace

sg_status run_scatter_add(const sg_backend_scatter_add &what, workspace &space) noexcept {
  const sg_dtype wide = sum_type_of(what.type);
  const std::int64_t size = element_size(what.type), wide_bytes = what.cols * element_size(wide);
  const bool counts = what.table_rows <= 4 * what.rows + 1024;
  const auto memory = [&](scratch use, std::int64_t bytes) { return space.get(use, static_cast<std::size_t>(bytes)); };
  auto *const entries = static_cast<row_entry *>(memory(scratch::panel_a, what.rows * std::int64_t{sizeof(row_entry)}));
  auto *const starts = static_cast<std::int64_t *>(memory(scratch::panel_b, counts ? 8 * what.table_rows : 1));
  auto *const sum = static_cast<char *>(memory(scratch::sums, wide_bytes));
  auto *const widened = static_cast<char *>(memory(scratch::converted, wide_bytes));
  if (entries == nullptr || starts == nullptr || sum == nullptr || widened == nullptr) return SG_STATUS_OUT_OF_MEMORY;
  poll end(space);
  const std::int64_t count = sort_rows(what, entries, counts ? starts : nullptr, end);
  if (count < 0) return SG_STATUS_CANCELLED;
  for (std::int64_t first = 0; first < count;) {
    const std::int64_t row = entries[first].row_of_table;
    std::int64_t next = first;
    for (; next < count && entries[next].row_of_table == row; ++next) {
      const char *const x = static_cast<const char *>(what.x) + entries[next].row * what.x_row * size;
      widen(next == first ? sum : widened, x, what.type, what.cols);
      if (next != first) simd().add(wide, sum, widened, what.cols);
      if (end.stops(what.cols)) return SG_STATUS_CANCELLED;
    }
    char *const to = static_cast<char *>(what.table) + row * what.table_row * size;
    widen(widened, to, what.type, what.cols);
    simd().add(wide, widened, sum, what.cols);
    narrow(to, what.type, widened, what.cols);
    first = next;
  }
  return SG_STATUS_OK;
}

}  // namespace sg::cpu
