// SPDX-License-Identifier: Apache-2.0
#include "ranks.hpp"

#include <algorithm>
#include <cmath>

namespace sg::cli {

namespace {

// Calls visit(d) for each divisor.
template <class Visit>
void each_divisor(std::int64_t of, Visit &&visit) {
  for (std::int64_t d = 1; d <= of / d; ++d) {
    if (of % d != 0) continue;
    visit(d);
    if (d != of / d) visit(of / d);
  }
}

std::int64_t part_of(std::int64_t extent, std::int64_t parts) noexcept {
  return extent / parts + (extent % parts != 0);
}

}  // namespace

double least_received(const whole_gemm &what, double ranks) {
  const double m = double(what.m), n = double(what.n), k = double(what.k);
  const double least = std::min({m, n, k}), most = std::max({m, n, k});
  const double middle = std::max(std::min(m, n), std::min(std::max(m, n), k));
  double accessed = 0;
  if (ranks <= most / middle)
    accessed = (most * middle + most * least) / ranks + middle * least;
  else if (ranks <= most * middle / (least * least))
    accessed = 2 * std::sqrt(most * middle * least * least / ranks) + most * middle / ranks;
  else
    accessed = 3 * std::cbrt(what.products() / ranks * what.products() / ranks);
  return std::max(accessed - what.elements() / ranks, 0.0);
}

whole_gemm rank_grid::block(const whole_gemm &what) const noexcept {
  return {part_of(what.m, p), part_of(what.n, q), part_of(what.k, r)};
}

double rank_grid::received(const whole_gemm &what, const element_bytes &size) const noexcept {
  const whole_gemm own = block(what);
  const auto lacks = [](std::int64_t rows, std::int64_t cols, std::int64_t owners) {
    return double(rows) * double(cols) * (1 - 1 / double(owners));
  };
  return size.in * (lacks(own.m, own.k, q) + lacks(own.k, own.n, p)) + size.out * lacks(own.m, own.n, r);
}

std::optional<rank_grid> best_grid(const whole_gemm &what, const element_bytes &size, std::int64_t ranks, double memory,
                                   std::int64_t depth) {
  std::optional<rank_grid> best;
  each_divisor(ranks, [&](std::int64_t r) {
    if (depth != 0 && r != depth) return;
    each_divisor(ranks / r, [&](std::int64_t p) {
      const rank_grid tried{p, ranks / r / p, r};
      if (tried.p > what.m || tried.q > what.n || tried.r > what.k) return;
      if (memory > 0 && tried.block(what).bytes(size) > memory) return;
      if (!best || tried.received(what, size) < best->received(what, size)) best = tried;
    });
  });
  return best;
}

double network_takes_over(const whole_gemm &what, double work, double seconds_of_word) {
  constexpr double most = double(std::int64_t(1) << 50);
  const auto is_slower = [&](double ranks) { return least_received(what, ranks) * seconds_of_word * ranks > work; };
  // What all ranks together receive grows with their number.
  double no = 1, yes = most;
  if (is_slower(no)) return no;
  if (!is_slower(yes)) return 0;
  while (yes - no > 1) {
    const double middle = std::floor((no + yes) / 2);
    (is_slower(middle) ? yes : no) = middle;
  }
  return yes;
}

}  // namespace sg::cli
