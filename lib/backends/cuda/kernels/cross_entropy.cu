// SPDX-License-Identifier: Apache-2.0
// The cross entropy of each row and its gradient: a block of threads for each row.
#include <cmath>
#include <cstdint>

#include "layer_types.cuh"
#include "layers.hpp"
#include "rows.cuh"

namespace sg::cuda {
inline namespace cross_entropy_cu {

inline __device__ float logarithm(float x) { return logf(x); }
inline __device__ double logarithm(double x) { return log(x); }

// dX may be X: a thread writes only elements that it alone has read.
template <class T>
__global__ void __launch_bounds__(block_threads) cross_entropy_kernel(sg_backend_cross_entropy what) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  for (std::int64_t i = blockIdx.x; i < what.rows; i += gridDim.x) {
    const T *x = static_cast<const T *>(what.x) + i * what.x_row;
    const std::int64_t index = what.index_bytes == 8 ? static_cast<const std::int64_t *>(what.indices)[i]
                                                     : static_cast<const std::int32_t *>(what.indices)[i];
    const bool exists = index >= 0 && index < what.cols;
    real most = -real(INFINITY), sum = 0;
    for (std::int64_t j = threadIdx.x; j < what.cols; j += block_threads) {
      const real value = ops::widened(x[j]);
      most = value > most ? value : most;
    }
    most = combined_over<block_threads>(most, [](real a, real b) { return b > a ? b : a; });
    for (std::int64_t j = threadIdx.x; j < what.cols; j += block_threads) sum += exponential(ops::widened(x[j]) - most);
    sum = combined_over<block_threads>(sum, [](real a, real b) { return a + b; });
    if (what.y != nullptr) {
      if (threadIdx.x == 0)
        static_cast<T *>(what.y)[i * what.y_row] =
            ops::rounded(exists ? logarithm(sum) + (most - ops::widened(x[index])) : real(0));
      continue;
    }
    real factor = real(what.scale);
    if (what.dy != nullptr) factor *= ops::widened(static_cast<const T *>(what.dy)[i * what.dy_row]);
    T *dx = static_cast<T *>(what.dx) + i * what.dx_row;
    for (std::int64_t j = threadIdx.x; j < what.cols; j += block_threads) {
      const real weight = exponential(ops::widened(x[j]) - most) / sum;
      dx[j] = ops::rounded(exists ? factor * (weight - real(j == index ? 1 : 0)) : real(0));
    }
  }
}

}  // namespace cross_entropy_cu

cudaError_t launch_cross_entropy(const sg_backend_cross_entropy &what, cudaStream_t in) noexcept {
  return with_layer_type(what.type, [&](auto element) {
    cross_entropy_kernel<typename decltype(element)::type><<<blocks_for(what.rows), block_threads, 0, in>>>(what);
    return cudaGetLastError();
  });
}

}  // namespace sg::cuda
