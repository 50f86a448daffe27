// SPDX-License-Identifier: Apache-2.0
#include "pool.hpp"

#include "operations.hpp"

namespace sg::sim {

std::function<void()> work_of(const address_space &memory, const sg_backend_pool &what) {
  const sg_backend_windows &w = what.of;
  const auto found = [&](const void *at, std::int64_t stride, std::int64_t pixels, const char *name) {
    return at ? memory.device_bytes(at, strided_extent(w.images, stride, w.channels * pixels, 1, what.type), name)
              : nullptr;
  };
  const std::int64_t unpooled = std::int64_t{w.height} * w.width, pooled = std::int64_t{w.out_h} * w.out_w;
  const std::byte *x = found(what.x, w.image, unpooled, "X of a pooling");
  std::byte *y = found(what.y, what.y_image, pooled, "Y of a pooling");
  const std::byte *dy = found(what.dy, what.y_image, pooled, "dY of a pooling");
  std::byte *dx = found(what.dx, what.dx_image, unpooled, "dX of a pooling");
  return [what, x, y, dy, dx] { run_pool(what, x, y, dy, dx); };
}

}  // namespace sg::sim
