// SPDX-License-Identifier: Apache-2.0
// The operation of row_dot.h, in its arithmetic.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

#include "layers.hpp"

namespace sg::sim {

// `a` and `b` may be NULL if there are no columns. The command's own pointers are not used.
inline void run_row_dot(const sg_backend_row_dot &what, const std::byte *a, const std::byte *b, std::byte *y) {
  with_layer_type(what.type, [&]<class Traits>() {
    using real = typename Traits::sum;
    const auto value = [](const std::byte *of, std::int64_t at) {
      return static_cast<real>(Traits::load(stored_at<Traits>(of)[at]));
    };
    for (std::int64_t i = 0; i < what.rows; ++i) {
      const real sum = pairwise_sum<real>(0, what.cols, [&](std::int64_t j) {
        return value(a, i * what.a_row + j * what.a_col) * value(b, i * what.b_row + j * what.b_col);
      });
      stored_at<Traits>(y)[i * what.y_row] = Traits::store(sum);
    }
  });
}

}  // namespace sg::sim
