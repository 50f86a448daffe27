// SPDX-License-Identifier: Apache-2.0
// A sum whose error grows with the logarithm of the number of addends.
#pragma once

#include <cstdint>

namespace sg {
inline namespace common {

// value(first) + value(first + 1) + ..., added pairwise.
template <class Real, class Value>
Real pairwise_sum(std::int64_t first, std::int64_t count, Value &&value) {
  if (count > 16) {
    const std::int64_t half = count / 2;
    return pairwise_sum<Real>(first, half, value) + pairwise_sum<Real>(first + half, count - half, value);
  }
  Real sum = 0;
  for (std::int64_t i = first; i < first + count; ++i) sum += value(i);
  return sum;
}

}  // namespace common
}  // namespace sg
