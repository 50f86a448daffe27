// SPDX-License-Identifier: Apache-2.0
// Which of the products that may be one call go each by itself, because the call would take as long as the deepest
// needs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <vector>

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

// Of products by number, those that go each by itself. Only those of one `kind(i)` may be one call.
template <class Kind, class Least>
std::vector<std::size_t> those_apart(std::vector<std::size_t> products, Kind &&kind, Least &&least) {
  std::sort(products.begin(), products.end(), [&](std::size_t x, std::size_t y) {
    return std::tuple(kind(x), least(y), x) < std::tuple(kind(y), least(x), y);
  });
  std::vector<std::size_t> result;
  for (std::size_t first = 0, end; first < products.size(); first = end) {
    for (end = first; end < products.size() && kind(products[end]) == kind(products[first]);) ++end;
    const std::size_t apart = faster_apart(end - first, [&](std::size_t i) { return least(products[first + i]); });
    for (std::size_t i = first; i < first + apart; ++i) result.push_back(products[i]);
  }
  return result;
}

}  // namespace sg
