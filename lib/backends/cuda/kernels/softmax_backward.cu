// SPDX-License-Identifier: Apache-2.0
// The gradient of a softmax: a block of threads for each row.
#include <cstdint>

#include "arithmetic.cuh"
#include "layers.hpp"

namespace sg::cuda {
namespace {

constexpr int threads = 256, warp = 32;

template <class Real>
__device__ Real block_sum(Real value) {
  __shared__ Real of_warps[threads / warp];
#pragma unroll
  for (int distance = warp / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  __syncthreads();  // the sums of the previous row have been read
  if (threadIdx.x % warp == 0) of_warps[threadIdx.x / warp] = value;
  __syncthreads();
  Real sum = 0;
#pragma unroll
  for (int i = 0; i < threads / warp; ++i) sum += of_warps[i];
  return sum;
}

// A thread writes only elements that it alone has read.
template <class T, class Gradient>
__global__ void __launch_bounds__(threads) softmax_backward_kernel(sg_backend_softmax_backward what) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  for (std::int64_t i = blockIdx.x; i < what.rows; i += gridDim.x) {
    const T *y = static_cast<const T *>(what.y) + i * what.y_row;
    const Gradient *dy = static_cast<const Gradient *>(what.dy) + i * what.dy_row;
    T *dx = static_cast<T *>(what.dx) + i * what.dx_row;
    real sum = 0;
    for (std::int64_t j = threadIdx.x; j < what.cols; j += threads)
      sum += ops::widened(y[j]) * arithmetic<Gradient>::widened(dy[j]);
    sum = block_sum(sum);
    for (std::int64_t j = threadIdx.x; j < what.cols; j += threads)
      dx[j] = ops::rounded(ops::widened(y[j]) * (arithmetic<Gradient>::widened(dy[j]) - sum));
  }
}

template <class T, class Gradient>
cudaError_t launch(const sg_backend_softmax_backward &what, cudaStream_t in) {
  const auto blocks = unsigned(what.rows < (1 << 20) ? what.rows : 1 << 20);
  softmax_backward_kernel<T, Gradient><<<blocks, threads, 0, in>>>(what);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_short(const sg_backend_softmax_backward &what, cudaStream_t in) {
  return what.dy_type == SG_DTYPE_F32 ? launch<T, float>(what, in) : launch<T, T>(what, in);
}

}  // namespace

cudaError_t launch_softmax_backward(const sg_backend_softmax_backward &what, cudaStream_t in) noexcept {
  switch (what.type) {
    case SG_DTYPE_F64: return launch<double, double>(what, in);
    case SG_DTYPE_F32: return launch<float, float>(what, in);
    case SG_DTYPE_F16: return launch_short<__half>(what, in);
    case SG_DTYPE_BF16: return launch_short<__nv_bfloat16>(what, in);
    default: return cudaErrorNotSupported;
  }
}

}  // namespace sg::cuda
