// SPDX-License-Identifier: Apache-2.0
// The gradient of a norm: a block of threads for each row.
#include <cstdint>

#include "layer_types.cuh"
#include "layers.hpp"
#include "rows.cuh"

namespace sg::cuda {
namespace {

// dX may be dY or X: a thread writes only elements that it alone has read.
template <class T>
__global__ void __launch_bounds__(block_threads) norm_backward_kernel(sg_backend_norm_backward what) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  const T *gamma = static_cast<const T *>(what.gamma);
  const real count = real(what.cols);
  const auto plus = [](real a, real b) { return a + b; };
  for (std::int64_t i = blockIdx.x; i < what.rows; i += gridDim.x) {
    const T *x = static_cast<const T *>(what.x) + i * what.x_row,
            *dy = static_cast<const T *>(what.dy) + i * what.dy_row;
    T *dx = static_cast<T *>(what.dx) + i * what.dx_row;
    const auto each = [&](auto body) {
      for (std::int64_t j = threadIdx.x; j < what.cols; j += block_threads) body(j);
    };
    const auto scaled = [&](std::int64_t j) {
      const real gradient = ops::widened(dy[j]);
      return gamma == nullptr ? gradient : gradient * ops::widened(gamma[j]);
    };
    real mean = 0, rest = 0, squares = 0, of_gradient = 0, of_product = 0;
    if (what.kind == SG_NORM_LAYER) {
      each([&](std::int64_t j) { mean += ops::widened(x[j]); });
      mean = combined_over<block_threads>(mean, plus) / count;
      each([&](std::int64_t j) { rest += ops::widened(x[j]) - mean; });
      rest = combined_over<block_threads>(rest, plus) / count;
    }
    const auto centred = [&](std::int64_t j) { return ops::widened(x[j]) - mean - rest; };
    each([&](std::int64_t j) { squares += centred(j) * centred(j); });
    squares = combined_over<block_threads>(squares, plus);
    const real factor = 1 / square_root(squares / count + real(what.epsilon));
    each([&](std::int64_t j) {
      of_gradient += scaled(j);
      of_product += scaled(j) * (centred(j) * factor);
    });
    of_gradient = what.kind == SG_NORM_LAYER ? combined_over<block_threads>(of_gradient, plus) / count : real(0);
    of_product = combined_over<block_threads>(of_product, plus) / count;
    real *products = static_cast<real *>(what.products);
    each([&](std::int64_t j) {
      const real h = centred(j) * factor, g = scaled(j);
      if (products != nullptr) products[i * what.products_row + j] = ops::widened(dy[j]) * h;
      dx[j] = ops::rounded(factor * (g - of_gradient - h * of_product));
    });
  }
}

}  // namespace

cudaError_t launch_norm_backward(const sg_backend_norm_backward &what, cudaStream_t in) noexcept {
  return with_layer_type(what.type, [&](auto element) {
    norm_backward_kernel<typename decltype(element)::type><<<blocks_for(what.rows), block_threads, 0, in>>>(what);
    return cudaGetLastError();
  });
}

}  // namespace sg::cuda
