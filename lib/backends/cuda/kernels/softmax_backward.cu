// SPDX-License-Identifier: Apache-2.0
// The gradient of a softmax: a warp for each row, or, if rows are long, a block of threads.
#include <cstdint>

#include "layers.hpp"
#include "rows.cuh"

namespace sg::cuda {
inline namespace softmax_backward_cu {

// A thread writes only elements that it alone has read.
template <class T, class Gradient, int count, int threads, int block>
__global__ void __launch_bounds__(block) softmax_backward_kernel(sg_backend_softmax_backward what) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  constexpr int rows_of_block = block / threads;
  const int thread = int(threadIdx.x) % threads;
  for (std::int64_t i = std::int64_t(blockIdx.x) * rows_of_block + int(threadIdx.x) / threads; i < what.rows;
       i += std::int64_t(gridDim.x) * rows_of_block) {
    const T *y = static_cast<const T *>(what.y) + i * what.y_row;
    const Gradient *dy = static_cast<const Gradient *>(what.dy) + i * what.dy_row;
    T *dx = static_cast<T *>(what.dx) + i * what.dx_row;
    real sum = 0;
    for (std::int64_t j = thread * count; j < what.cols; j += threads * count) {
      const pack<T, count> of_y = load_pack<count>(y + j);
      const pack<Gradient, count> of_dy = load_pack<count>(dy + j);
#pragma unroll
      for (int v = 0; v < count; ++v) sum += ops::widened(of_y.at[v]) * arithmetic<Gradient>::widened(of_dy.at[v]);
    }
    sum = combined_over<threads>(sum, [](real a, real b) { return a + b; });
    for (std::int64_t j = thread * count; j < what.cols; j += threads * count) {
      pack<T, count> of_y = load_pack<count>(y + j);
      const pack<Gradient, count> of_dy = load_pack<count>(dy + j);
#pragma unroll
      for (int v = 0; v < count; ++v)
        of_y.at[v] = ops::rounded(ops::widened(of_y.at[v]) * (arithmetic<Gradient>::widened(of_dy.at[v]) - sum));
      store_pack(dx + j, of_y);
    }
  }
}

template <class T, class Gradient, int count>
cudaError_t launch_packs(const sg_backend_softmax_backward &what, cudaStream_t in) {
  constexpr int warp = 32, most = 1024;
  constexpr std::int64_t short_row = 1024, long_row = 8192;
  constexpr int rows_of_block = block_threads / warp;
  if (what.cols <= short_row)
    softmax_backward_kernel<T, Gradient, count, warp, block_threads>
        <<<blocks_for((what.rows + rows_of_block - 1) / rows_of_block), block_threads, 0, in>>>(what);
  else if (what.cols <= long_row)
    softmax_backward_kernel<T, Gradient, count, block_threads, block_threads>
        <<<blocks_for(what.rows), block_threads, 0, in>>>(what);
  else
    softmax_backward_kernel<T, Gradient, count, most, most><<<blocks_for(what.rows), most, 0, in>>>(what);
  return cudaGetLastError();
}

template <class T, class Gradient>
cudaError_t launch(const sg_backend_softmax_backward &what, cudaStream_t in) {
  constexpr int count = whole_pack<T>;
  if constexpr (sizeof(T) == sizeof(Gradient)) {
    const row_operands of_y{what.rows, what.cols, what.y, what.y_row, 1, what.dx, what.dx_row, 1};
    const row_operands of_dy{what.rows, what.cols, what.dy, what.dy_row, 1, what.dx, what.dx_row, 1};
    if (pack_of(of_y, sizeof(T), sizeof(T), {}) == count && pack_of(of_dy, sizeof(T), sizeof(T), {}) == count)
      return launch_packs<T, Gradient, count>(what, in);
  }
  return launch_packs<T, Gradient, 1>(what, in);
}

template <class T>
cudaError_t launch_short(const sg_backend_softmax_backward &what, cudaStream_t in) {
  return what.dy_type == SG_DTYPE_F32 ? launch<T, float>(what, in) : launch<T, T>(what, in);
}

}  // namespace softmax_backward_cu

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
