// SPDX-License-Identifier: Apache-2.0
#include "cross_entropy.hpp"

#include "operations.hpp"

namespace sg::sim {

std::function<void()> work_of(const address_space &memory, const sg_backend_cross_entropy &what) {
  const auto found = [&](const void *at, std::int64_t row, std::int64_t cols, const char *name) {
    return at ? memory.device_bytes(at, strided_extent(what.rows, row, cols, 1, what.type), name) : nullptr;
  };
  const std::byte *x = found(what.x, what.x_row, what.cols, "the scores of a cross entropy");
  const std::byte *indices = memory.device_bytes(what.indices, static_cast<std::uint64_t>(what.rows * what.index_bytes),
                                                 "the indices of a cross entropy");
  std::byte *y = found(what.y, what.y_row, 1, "the result of a cross entropy");
  const std::byte *dy = found(what.dy, what.dy_row, 1, "dY of a cross entropy");
  std::byte *dx = found(what.dx, what.dx_row, what.cols, "the gradient of a cross entropy");
  return [what, x, indices, y, dy, dx] { run_cross_entropy(what, x, indices, y, dy, dx); };
}

}  // namespace sg::sim
