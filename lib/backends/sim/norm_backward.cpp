// SPDX-License-Identifier: Apache-2.0
#include "norm_backward.hpp"

#include "operations.hpp"

namespace sg::sim {

std::function<void()> work_of(const address_space &memory, const sg_backend_norm_backward &what) {
  const auto found = [&](const void *at, std::int64_t row, sg_dtype type, const char *name) {
    return memory.device_bytes(at, strided_extent(what.rows, row, what.cols, 1, type), name);
  };
  const std::byte *dy = found(what.dy, what.dy_row, what.type, "dY of a norm's gradient");
  const std::byte *x = found(what.x, what.x_row, what.type, "X of a norm's gradient");
  const std::byte *gamma = nullptr;
  if (what.gamma)
    gamma =
        memory.device_bytes(what.gamma, strided_extent(1, 0, what.cols, 1, what.type), "gamma of a norm's gradient");
  std::byte *dx = found(what.dx, what.dx_row, what.type, "dX of a norm's gradient");
  const std::int64_t groups = (what.rows + what.group_rows - 1) / what.group_rows;
  const auto sums = [&](const void *at, std::int64_t row, const char *name) {
    return at ? memory.device_bytes(at, strided_extent(groups, row, what.cols, 1, sum_type_of(what.type)), name)
              : nullptr;
  };
  std::byte *products = sums(what.products, what.products_row, "the products of a norm's gradient");
  std::byte *dy_sums = sums(what.dy_sums, what.dy_sums_row, "the sums of a norm's gradient");
  return [what, dy, x, gamma, dx, products, dy_sums] { run_norm_backward(what, dy, x, gamma, dx, products, dy_sums); };
}

}  // namespace sg::sim
