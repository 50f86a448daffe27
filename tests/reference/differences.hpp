// SPDX-License-Identifier: Apache-2.0
// Gradients by central differences.
#pragma once

#include <vector>

#include "numbers.hpp"

namespace sg_reference {

// The gradient of a loss with respect to some of the values on which it depends.
template <class Loss>
std::vector<real> difference_gradient(std::vector<real> &values, Loss &&loss) {
  constexpr real step = 1e-5L;
  std::vector<real> gradient;
  for (real &each : values) {
    const real kept = each;
    each = kept + step;
    const real above = loss();
    each = kept - step;
    gradient.push_back((above - loss()) / (2 * step));
    each = kept;
  }
  return gradient;
}

}  // namespace sg_reference
