// SPDX-License-Identifier: Apache-2.0
// The operation of row_reduce.h, in its arithmetic.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/common/rows.hpp"
#include "layers.hpp"

namespace sg::sim {

// The command's own pointers are not used.
inline void run_row_reduce(const sg_backend_row_reduce &what, const std::byte *x, std::byte *y) {
  with_layer_type(what.type, [&]<class Traits>() {
    using real = typename Traits::sum;
    for (std::int64_t i = 0; i < what.rows; ++i) {
      const real value = reduced<real>(what.reduction, what.cols, [&](std::int64_t j) {
        return static_cast<real>(Traits::load(stored_at<Traits>(x)[i * what.x_row + j * what.x_col]));
      });
      stored_at<Traits>(y)[i * what.y_row] = Traits::store(value);
    }
  });
}

}  // namespace sg::sim
