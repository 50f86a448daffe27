// SPDX-License-Identifier: Apache-2.0
#include "scatter_add.hpp"

#include "operations.hpp"

namespace sg::sim {

std::function<void()> work_of(const address_space &memory, const sg_backend_scatter_add &what) {
  const std::byte *x =
      memory.device_bytes(what.x, strided_extent(what.rows, what.x_row, what.cols, 1, what.type), "X of a scatter-add");
  const std::byte *indices = memory.device_bytes(what.indices, static_cast<std::uint64_t>(what.rows * what.index_bytes),
                                                 "the indices of a scatter-add");
  std::byte *table =
      memory.device_bytes(what.table, strided_extent(what.table_rows, what.table_row, what.cols, 1, what.type),
                          "the table of a scatter-add");
  return [what, x, indices, table] { run_scatter_add(what, x, indices, table); };
}

}  // namespace sg::sim
