// SPDX-License-Identifier: Apache-2.0
// Which of the products that may be one call go each by itself, because the call would take as long as the deepest
// needs.
#pragma once

#include <cstddef>

namespace sg {

// Of `count` products, those of the greatest least_company (plan/cost.hpp) first: how many at the front go each by
// itself, so that all take the least time. `least(i)` is of the i-th. Times are in those of a product by itself: the
// call takes what its deepest needs, and each of the others one.
template <class Least>
std::size_t faster_apart(std::size_t count, Least &&least) noexcept {
  std::size_t best = 0, best_time = count;
  for (std::size_t apart = 0; apart <= count; ++apart) {
    const std::size_t time = apart + (apart < count ? least(apart) : 0);
    if (apart > 0 && time >= best_time) continue;
    best = apart;
    best_time = time;
  }
  return best;
}

}  // namespace sg
