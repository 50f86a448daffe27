// SPDX-License-Identifier: Apache-2.0
#include "row_reduce.hpp"

#include "operations.hpp"

namespace sg::sim {

std::function<void()> work_of(const address_space &memory, const sg_backend_row_reduce &what) {
  const std::byte *x = nullptr;
  if (what.cols > 0)
    x = memory.device_bytes(what.x, strided_extent(what.rows, what.x_row, what.cols, what.x_col, what.type),
                            "X of reductions of rows");
  std::byte *y = memory.device_bytes(what.y, strided_extent(what.rows, what.y_row, 1, 1, what.type),
                                     "the result of reductions of rows");
  return [what, x, y] { run_row_reduce(what, x, y); };
}

}  // namespace sg::sim
