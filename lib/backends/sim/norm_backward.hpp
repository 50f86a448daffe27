// SPDX-License-Identifier: Apache-2.0
// The gradients of norms, in their arithmetic.
#pragma once

#include <streamgemm/backend.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/common/pairwise_sum.hpp"
#include "backends/common/rows.hpp"
#include "layers.hpp"

namespace sg::sim {

// The gradients of a norm of a row; `gamma` NULL: ones; `products` NULL: none. dX may be dY or X.
template <class Real>
void norm_gradient(const sg_backend_norm_backward &what, Real *dx, Real *products, const Real *dy, const Real *x,
                   const Real *gamma) noexcept {
  const std::int64_t n = what.cols;
  const auto count = static_cast<Real>(n);
  const auto mean_of = [&](auto &&value) { return pairwise_sum<Real>(0, n, value) / count; };
  Real mean = 0, rest = 0;  // the mean is the rounded one, and that of the differences from it
  if (what.kind == SG_NORM_LAYER) {
    mean = mean_of([&](std::int64_t j) { return x[j]; });
    rest = mean_of([&](std::int64_t j) { return x[j] - mean; });
  }
  const auto centred = [&](std::int64_t j) { return x[j] - mean - rest; };
  const Real variance = mean_of([&](std::int64_t j) { return centred(j) * centred(j); });
  const Real factor = 1 / std::sqrt(variance + static_cast<Real>(what.epsilon));
  const auto scaled = [&](std::int64_t j) { return gamma ? dy[j] * gamma[j] : dy[j]; };
  const Real of_gradient = what.kind == SG_NORM_LAYER ? mean_of(scaled) : 0;
  const Real of_product = mean_of([&](std::int64_t j) { return scaled(j) * (centred(j) * factor); });
  for (std::int64_t j = 0; j < n; ++j) {
    const Real h = centred(j) * factor, g = scaled(j);
    if (products) products[j] = dy[j] * h;
    dx[j] = factor * (g - of_gradient - h * of_product);
  }
}

// The command's own pointers are not used.
// `gamma` and the sums may be NULL.
inline void run_norm_backward(const sg_backend_norm_backward &what, const std::byte *dy, const std::byte *x,
                              const std::byte *gamma, std::byte *dx, std::byte *products, std::byte *dy_sums) {
  with_layer_type(what.type, [&]<class Traits>() {
    using real = typename Traits::sum;
    const auto read = [&](const std::byte *from, std::int64_t first) {
      std::vector<real> values(static_cast<std::size_t>(from ? what.cols : 0));
      for (std::size_t j = 0; j < values.size(); ++j)
        values[j] = static_cast<real>(Traits::load(stored_at<Traits>(from)[first + std::int64_t(j)]));
      return values;
    };
    const std::vector<real> factors = read(gamma, 0);
    std::vector<real> result(static_cast<std::size_t>(what.cols)), of_row(result.size());
    const auto group_of = [&](std::byte *sums, std::int64_t row, std::int64_t pitch) {
      return reinterpret_cast<real *>(sums) + row / what.group_rows * pitch;
    };
    for (std::int64_t i = 0; i < what.rows; ++i) {
      const std::vector<real> of_dy = read(dy, i * what.dy_row), of_x = read(x, i * what.x_row);
      norm_gradient(what, result.data(), of_row.data(), of_dy.data(), of_x.data(), gamma ? factors.data() : nullptr);
      if (products) add_to_group(what, i, group_of(products, i, what.products_row), of_row.data());
      if (dy_sums) add_to_group(what, i, group_of(dy_sums, i, what.dy_sums_row), of_dy.data());
      for (std::size_t j = 0; j < result.size(); ++j)
        stored_at<Traits>(dx)[i * what.dx_row + std::int64_t(j)] = Traits::store(result[j]);
    }
  });
}

}  // namespace sg::sim
