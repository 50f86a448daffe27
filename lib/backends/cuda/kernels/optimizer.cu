// SPDX-License-Identifier: Apache-2.0
// A step of SGD or Adam: a thread for each parameter.
#include <cmath>
#include <cstdint>

#include "layer_types.cuh"
#include "layers.hpp"
#include "rows.cuh"

namespace sg::cuda {
inline namespace optimizer_cu {

// The numbers of a step in the type of the arithmetic.
template <class Real>
struct optimizer_step {
  bool is_adam, nesterov, decoupled;
  Real rate, decay, beta1, beta2, rest1, rest2, epsilon, step, root, shrink;
};

template <class T>
__global__ void __launch_bounds__(block_threads)
    optimizer_kernel(std::int64_t elements, T *parameters, const T *gradient, typename arithmetic<T>::sum *first,
                     typename arithmetic<T>::sum *second, optimizer_step<typename arithmetic<T>::sum> s) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  for (std::int64_t i = std::int64_t(blockIdx.x) * block_threads + threadIdx.x; i < elements;
       i += std::int64_t(gridDim.x) * block_threads) {
    const real parameter = ops::widened(parameters[i]);
    real g = ops::widened(gradient[i]);
    if (s.is_adam) {
      if (!s.decoupled) g += s.decay * parameter;
      const real mean = s.beta1 * first[i] + s.rest1 * g, square = s.beta2 * second[i] + s.rest2 * g * g;
      first[i] = mean, second[i] = square;
      const real from = s.decoupled ? parameter * s.shrink : parameter;
      parameters[i] = ops::rounded(from - s.step * mean / (square_root(square) / s.root + s.epsilon));
      continue;
    }
    g += s.decay * parameter;
    if (first != nullptr) {
      const real momentum = s.beta1 * first[i] + g;
      first[i] = momentum;
      g = s.nesterov ? g + s.beta1 * momentum : momentum;
    }
    parameters[i] = ops::rounded(parameter - s.rate * g);
  }
}

}  // namespace optimizer_cu

cudaError_t launch_optimizer(const sg_backend_optimizer &what, cudaStream_t in) noexcept {
  return with_layer_type(what.type, [&](auto element) {
    using T = typename decltype(element)::type;
    using real = typename arithmetic<T>::sum;
    const optimizer_step<real> step{what.is_adam != 0,
                                    what.nesterov != 0,
                                    what.decoupled != 0,
                                    real(what.rate),
                                    real(what.weight_decay),
                                    real(what.beta1),
                                    real(what.beta2),
                                    real(1 - what.beta1),
                                    real(1 - what.beta2),
                                    real(what.epsilon),
                                    real(what.rate / what.correction1),
                                    real(std::sqrt(what.correction2)),
                                    real(1 - what.rate * what.weight_decay)};
    const unsigned grid = blocks_for((what.elements + block_threads - 1) / block_threads);
    optimizer_kernel<T><<<grid, block_threads, 0, in>>>(
        what.elements, static_cast<T *>(what.parameters), static_cast<const T *>(what.gradient),
        static_cast<real *>(what.first), static_cast<real *>(what.second), step);
    return cudaGetLastError();
  });
}

}  // namespace sg::cuda
