// SPDX-License-Identifier: Apache-2.0
// Sums into rows of a table, on one thread: the rows of X are sorted by their indices, and those of one index are added
// in their order.
#include <algorithm>
#include <numeric>

#include "backends/common/rows.hpp"
#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/simd/simd.hpp"
#include "backends/cpu/worker/poll.hpp"
#include "layers.hpp"

namespace sg::cpu {

sg_status run_scatter_add(const sg_backend_scatter_add &what, workspace &space) noexcept {
  const sg_dtype wide = sum_type_of(what.type);
  const std::int64_t size = element_size(what.type), wide_bytes = what.cols * element_size(wide);
  struct entry {
    std::int64_t row_of_table, row;
  };
  auto *const entries =
      static_cast<entry *>(space.get(scratch::panel_a, static_cast<std::size_t>(what.rows) * sizeof(entry)));
  auto *const sum = static_cast<char *>(space.get(scratch::sums, static_cast<std::size_t>(wide_bytes)));
  auto *const widened = static_cast<char *>(space.get(scratch::converted, static_cast<std::size_t>(wide_bytes)));
  if (entries == nullptr || sum == nullptr || widened == nullptr) return SG_STATUS_OUT_OF_MEMORY;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < what.rows; ++i) {
    std::int64_t index = index_at(what.indices, i, what.index_bytes);
    if (what.from_end && index < 0) index += what.table_rows;
    if (index >= 0 && index < what.table_rows) entries[count++] = {index, i};
  }
  std::sort(entries, entries + count, [](const entry &a, const entry &b) {
    return a.row_of_table != b.row_of_table ? a.row_of_table < b.row_of_table : a.row < b.row;
  });
  poll end(space);
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
