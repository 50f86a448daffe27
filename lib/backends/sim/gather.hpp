// SPDX-License-Identifier: Apache-2.0
// Rows of a table by their indices.
#pragma once

#include <streamgemm/backend.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#include "address_space.hpp"

namespace sg::sim {

// The command's own pointers are not used.
inline void run_gather(const sg_backend_gather &what, const std::byte *table, const std::byte *indices, std::byte *y) {
  for (std::int64_t i = 0; i < what.rows; ++i) {
    std::int64_t index = what.index_bytes == 8 ? reinterpret_cast<const std::int64_t *>(indices)[i]
                                               : reinterpret_cast<const std::int32_t *>(indices)[i];
    if (what.from_end && index < 0) index += what.table_rows;
    std::byte *const to = y + i * what.y_row;
    const bool exists = index >= 0 && index < what.table_rows;
    if (exists) std::memcpy(to, table + index * what.table_row, static_cast<std::size_t>(what.row_bytes));
    for (std::int64_t at = 0; !exists && at < what.row_bytes; ++at)
      to[at] = static_cast<std::byte>(what.fill >> (at % 8 * 8));
  }
}

inline std::function<void()> work_of(const address_space &memory, const sg_backend_gather &what) {
  const auto extent = [&](std::int64_t rows, std::int64_t row) {
    return static_cast<std::uint64_t>((rows - 1) * row + what.row_bytes);
  };
  const std::byte *table =
      memory.device_bytes(what.table, extent(what.table_rows, what.table_row), "the table of a gather");
  const std::byte *indices = memory.device_bytes(what.indices, static_cast<std::uint64_t>(what.rows * what.index_bytes),
                                                 "the indices of a gather");
  std::byte *y = memory.device_bytes(what.y, extent(what.rows, what.y_row), "Y of a gather");
  return [what, table, indices, y] { run_gather(what, table, indices, y); };
}

}  // namespace sg::sim
