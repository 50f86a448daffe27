// SPDX-License-Identifier: Apache-2.0
// The operations of cross_entropy.h, in their arithmetic.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/common/rows.hpp"
#include "layers.hpp"

namespace sg::sim {

// The command's own pointers are not used.
// `y` or `dx` is NULL; `dy` may be.
inline void run_cross_entropy(const sg_backend_cross_entropy &what, const std::byte *x, const std::byte *indices,
                              std::byte *y, const std::byte *dy, std::byte *dx) {
  with_layer_type(what.type, [&]<class Traits>() {
    using real = typename Traits::sum;
    const std::int64_t n = what.cols;
    std::vector<real> row(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < what.rows; ++i) {
      for (std::int64_t j = 0; j < n; ++j)
        row[static_cast<std::size_t>(j)] = static_cast<real>(Traits::load(stored_at<Traits>(x)[i * what.x_row + j]));
      const std::int64_t index = index_at(indices, i, what.index_bytes);
      const bool exists = index >= 0 && index < n;
      const real most = extreme_without_nan<true>(row.data(), n),
                 chosen = exists ? row[static_cast<std::size_t>(index)] : 0;
      for (real &each : row) each = std::exp(each - most);
      const real sum = pairwise_sum<real>(0, n, [&](std::int64_t j) { return row[static_cast<std::size_t>(j)]; });
      if (y) {
        stored_at<Traits>(y)[i * what.y_row] = Traits::store(exists ? std::log(sum) + (most - chosen) : 0);
        continue;
      }
      auto factor = static_cast<real>(what.scale);
      if (dy) factor *= static_cast<real>(Traits::load(stored_at<Traits>(dy)[i * what.dy_row]));
      for (std::int64_t j = 0; j < n; ++j) {
        const real gradient = factor * (row[static_cast<std::size_t>(j)] / sum - (j == index ? 1 : 0));
        stored_at<Traits>(dx)[i * what.dx_row + j] = Traits::store(exists ? gradient : 0);
      }
    }
  });
}

}  // namespace sg::sim
