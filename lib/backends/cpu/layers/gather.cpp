// SPDX-License-Identifier: Apache-2.0
#include "gather.hpp"

#include <algorithm>
#include <cstring>

#include "backends/cpu/worker/poll.hpp"

namespace sg::cpu {

sg_status run_gather(const sg_backend_gather &what, workspace &space) noexcept {
  poll end(space);
  for (std::int64_t i = 0; i < what.rows; ++i) {
    std::int64_t index = what.index_bytes == 8 ? static_cast<const std::int64_t *>(what.indices)[i]
                                               : static_cast<const std::int32_t *>(what.indices)[i];
    if (what.from_end && index < 0) index += what.table_rows;
    char *const to = static_cast<char *>(what.y) + i * what.y_row;
    if (index >= 0 && index < what.table_rows) {
      std::memcpy(to, static_cast<const char *>(what.table) + index * what.table_row,
                  static_cast<std::size_t>(what.row_bytes));
    } else {
      for (std::int64_t at = 0; at < what.row_bytes; at += 8)
        std::memcpy(to + at, &what.fill, static_cast<std::size_t>(std::min<std::int64_t>(8, what.row_bytes - at)));
    }
    if (end.stops(what.row_bytes / what.component_bytes)) return SG_STATUS_CANCELLED;
  }
  return SG_STATUS_OK;
}

}  // namespace sg::cpu
