// SPDX-License-Identifier: Apache-2.0
// The operations of optimizer.h, in their arithmetic.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/common/rows.hpp"
#include "layers.hpp"

namespace sg::sim {

// The command's own pointers are not used.
// `first` and `second` may be NULL as in the command.
inline void run_optimizer(const sg_backend_optimizer &what, std::byte *parameters, const std::byte *gradient,
                          std::byte *first, std::byte *second) {
  with_layer_type(what.type, [&]<class Traits>() {
    using real = typename Traits::sum;
    for (std::int64_t i = 0; i < what.elements; ++i) {
      auto &stored = stored_at<Traits>(parameters)[i];
      auto value = static_cast<real>(Traits::load(stored));
      const auto slope = static_cast<real>(Traits::load(stored_at<Traits>(gradient)[i]));
      const auto at = [i](std::byte *state) { return state ? reinterpret_cast<real *>(state) + i : nullptr; };
      optimize(what, &value, &slope, at(first), at(second), 1);
      stored = Traits::store(value);
    }
  });
}

}  // namespace sg::sim
