// SPDX-License-Identifier: Apache-2.0
// The operations of pool.h, in their arithmetic.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/common/pool.hpp"
#include "layers.hpp"

namespace sg::sim {

// The command's own pointers are not used.
// Those that the command does not have are NULL.
inline void run_pool(const sg_backend_pool &what, const std::byte *x, std::byte *y, const std::byte *dy,
                     std::byte *dx) {
  with_layer_type(what.type, [&]<class Traits>() {
    using real = typename Traits::sum;
    const sg_backend_windows &w = what.of;
    const std::int64_t unpooled = std::int64_t{w.channels} * w.height * w.width;
    const std::int64_t pooled = std::int64_t{w.channels} * w.out_h * w.out_w;
    const auto read = [](const std::byte *from, std::int64_t first, std::int64_t count) {
      std::vector<real> values(static_cast<std::size_t>(from ? count : 0));
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<real>(Traits::load(stored_at<Traits>(from)[first + std::int64_t(i)]));
      return values;
    };
    const auto write = [](std::byte *to, std::int64_t first, const std::vector<real> &values) {
      for (std::size_t i = 0; i < values.size(); ++i)
        stored_at<Traits>(to)[first + std::int64_t(i)] = Traits::store(values[i]);
    };
    const pooled_image<real> image(what);
    const auto never_stops = [](std::int64_t) { return false; };
    for (std::int64_t n = 0; n < w.images; ++n) {
      const std::vector<real> of_x = read(x, n * w.image, unpooled);
      std::vector<real> result(static_cast<std::size_t>(y ? pooled : unpooled));
      if (y) {
        image.pool(of_x.data(), result.data(), never_stops);
        write(y, n * what.y_image, result);
      } else {
        image.pool_gradient(of_x.data(), read(dy, n * what.y_image, pooled).data(), result.data(), never_stops);
        write(dx, n * what.dx_image, result);
      }
    }
  });
}

}  // namespace sg::sim
