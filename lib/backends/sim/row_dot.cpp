// SPDX-License-Identifier: Apache-2.0
#include "row_dot.hpp"

#include "operations.hpp"

namespace sg::sim {

std::function<void()> work_of(const address_space &memory, const sg_backend_row_dot &what) {
  const auto found = [&](const void *at, std::int64_t row, std::int64_t col, const char *name) {
    return what.cols == 0 ? nullptr
                          : memory.device_bytes(at, strided_extent(what.rows, row, what.cols, col, what.type), name);
  };
  const std::byte *a = found(what.a, what.a_row, what.a_col, "A of dot products of rows");
  const std::byte *b = found(what.b, what.b_row, what.b_col, "B of dot products of rows");
  std::byte *y = memory.device_bytes(what.y, strided_extent(what.rows, what.y_row, 1, 1, what.type),
                                     "the result of dot products of rows");
  return [what, a, b, y] { run_row_dot(what, a, b, y); };
}

}  // namespace sg::sim
