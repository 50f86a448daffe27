// SPDX-License-Identifier: Apache-2.0
// A softmax by definition.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace sg_reference {

// Replaces the first `visible` of `count` values by their softmax, and the others by 0.
template <class Real>
void softmax(Real *values, std::int64_t count, std::int64_t visible) {
  Real most = -INFINITY, sum = 0;
  for (std::int64_t j = 0; j < visible; ++j) most = std::max(most, values[j]);
  for (std::int64_t j = 0; j < visible; ++j) sum += values[j] = std::exp(values[j] - most);
  for (std::int64_t j = 0; j < count; ++j) values[j] = j < visible ? values[j] / sum : 0;
}

}  // namespace sg_reference
