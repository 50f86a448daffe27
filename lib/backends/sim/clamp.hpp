// SPDX-License-Identifier: Apache-2.0
// The operation of clamp.h, in its arithmetic.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

#include "layers.hpp"

namespace sg::sim {

// `dy` may be NULL. The command's own pointers are not used.
inline void run_clamp(const sg_backend_clamp &what, const std::byte *x, const std::byte *dy, std::byte *y) {
  with_layer_type(what.type, [&]<class Traits>() {
    using real = typename Traits::sum;
    const auto low = static_cast<real>(what.low), high = static_cast<real>(what.high);
    for (std::int64_t j = 0; j < what.n; ++j)
      for (std::int64_t i = 0; i < what.m; ++i) {
        const auto value = static_cast<real>(Traits::load(stored_at<Traits>(x)[i + j * what.ldx]));
        real result = value < low ? low : value;
        if (result > high) result = high;
        if (dy) {
          const bool is_within = low <= value && value <= high;
          result = is_within ? static_cast<real>(Traits::load(stored_at<Traits>(dy)[i + j * what.lddy])) : 0;
        }
        stored_at<Traits>(y)[i + j * what.ldy] = Traits::store(result);
      }
  });
}

}  // namespace sg::sim
