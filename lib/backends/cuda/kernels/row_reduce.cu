// SPDX-License-Identifier: Apache-2.0
// Reductions of rows: a warp or a block computes a row, or, if its elements are apart or few, some threads of a block
// that computes neighbouring rows.
#include <cstdint>

#include "layer_types.cuh"
#include "layers.hpp"
#include "row_reduce.hpp"
#include "rows.cuh"

namespace sg::cuda {
inline namespace row_reduce_cu {

// How two parts of a row become one.
template <class Real>
struct reduction_of {
  sg_reduction reduction;

  __device__ bool sums() const { return reduction == SG_REDUCTION_SUM || reduction == SG_REDUCTION_MEAN; }
  __device__ Real of_nothing() const {
    return sums() ? Real(0) : reduction == SG_REDUCTION_MAX ? -Real(INFINITY) : Real(INFINITY);
  }
  __device__ Real operator()(Real a, Real b) const {
    if (sums()) return a + b;
    const bool is_better = reduction == SG_REDUCTION_MAX ? b > a : b < a;
    return is_better || b != b ? b : a;
  }
  __device__ Real finished(Real value, std::int64_t cols) const {
    return reduction == SG_REDUCTION_MEAN ? value / Real(cols) : value;
  }
};

// Elements first, first + step, ..., `count` neighbours at a time; fewer at the row's end. Short parts of a sum, which
// are added in double, keep its error small.
template <class T, int count>
__device__ double reduce_elements(const T *x, std::int64_t x_col, std::int64_t cols, std::int64_t first,
                                  std::int64_t step, const reduction_of<double> &plus_parts) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  const reduction_of<real> plus{plus_parts.reduction};
  constexpr int steps_of_part = 64;
  double total = plus_parts.of_nothing();
  for (std::int64_t j = first; j < cols;) {
    real part = plus.of_nothing();
    for (int n = 0; n < steps_of_part && j < cols; ++n, j += step) {
      if (count > 1 && j + count <= cols) {
        const pack<T, count> values = load_pack<count>(x + j);
#pragma unroll
        for (int v = 0; v < count; ++v) part = plus(part, ops::widened(values.at[v]));
      } else {
        for (std::int64_t k = j; k < j + count && k < cols; ++k) part = plus(part, ops::widened(x[k * x_col]));
      }
    }
    total = plus_parts(total, double(part));
  }
  return total;
}

// Contiguous rows, `threads` threads for each.
template <class T, int count, int threads>
__global__ void __launch_bounds__(threads == 32 ? block_threads : threads)
    row_reduce_kernel(sg_backend_row_reduce what) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  const reduction_of<double> plus{what.reduction};
  const int rows_of_block = int(blockDim.x) / threads, thread = int(threadIdx.x) % threads;
  for (std::int64_t i = std::int64_t(blockIdx.x) * rows_of_block + threadIdx.x / threads; i < what.rows;
       i += std::int64_t(gridDim.x) * rows_of_block) {
    const T *x = static_cast<const T *>(what.x) + i * what.x_row;
    double value = reduce_elements<T, count>(x, 1, what.cols, std::int64_t(thread) * count, threads * count, plus);
    value = combined_over<threads>(value, plus);
    if (thread == 0) static_cast<T *>(what.y)[i * what.y_row] = ops::rounded(real(plus.finished(value, what.cols)));
  }
}

constexpr int reduced_neighbours = 32, threads_of_reduced = 8;

template <class T>
__global__ void row_reduce_by_columns_kernel(sg_backend_row_reduce what) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  __shared__ double of_threads[threads_of_reduced][reduced_neighbours + 1];
  const reduction_of<double> plus{what.reduction};
  for (std::int64_t first = std::int64_t(blockIdx.x) * reduced_neighbours; first < what.rows;
       first += std::int64_t(gridDim.x) * reduced_neighbours) {
    const std::int64_t i = first + threadIdx.x;
    const bool exists = i < what.rows;  // a thread without a row takes part in the barriers
    double value = plus.of_nothing();
    if (exists)
      value = reduce_elements<T, 1>(static_cast<const T *>(what.x) + i * what.x_row, what.x_col, what.cols, threadIdx.y,
                                    threads_of_reduced, plus);
    __syncthreads();  // the values of the previous rows have been read
    of_threads[threadIdx.y][threadIdx.x] = value;
    __syncthreads();
    if (!exists || threadIdx.y != 0) continue;
    for (int y = 1; y < threads_of_reduced; ++y) value = plus(value, of_threads[y][threadIdx.x]);
    static_cast<T *>(what.y)[i * what.y_row] = ops::rounded(real(plus.finished(value, what.cols)));
  }
}

template <class T, int count>
cudaError_t launch_contiguous_reduce(const sg_backend_row_reduce &what, cudaStream_t in) {
  constexpr int warps = block_threads / 32, long_block = 1024;
  if (what.cols <= 1024)
    row_reduce_kernel<T, count, 32><<<blocks_for((what.rows + warps - 1) / warps), block_threads, 0, in>>>(what);
  else if (what.cols <= 32768)
    row_reduce_kernel<T, count, block_threads><<<blocks_for(what.rows), block_threads, 0, in>>>(what);
  else
    row_reduce_kernel<T, count, long_block><<<blocks_for(what.rows), long_block, 0, in>>>(what);
  return cudaGetLastError();
}

}  // namespace row_reduce_cu

cudaError_t launch_row_reduce(const sg_backend_row_reduce &what, cudaStream_t in) noexcept {
  return with_layer_type(what.type, [&](auto element) {
    using T = typename decltype(element)::type;
    if (is_by_columns(what)) {
      const dim3 block(reduced_neighbours, threads_of_reduced);
      const unsigned grid = blocks_for((what.rows + reduced_neighbours - 1) / reduced_neighbours);
      row_reduce_by_columns_kernel<T><<<grid, block, 0, in>>>(what);
      return cudaGetLastError();
    }
    return pack_of(what) == whole_pack<T> ? launch_contiguous_reduce<T, whole_pack<T>>(what, in)
                                          : launch_contiguous_reduce<T, 1>(what, in);
  });
}

}  // namespace sg::cuda
