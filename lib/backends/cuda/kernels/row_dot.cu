// SPDX-License-Identifier: Apache-2.0
// Dot products of rows: a warp or a block computes a row, or, if its elements are apart or few, some threads of a block
// that computes neighbouring rows.
#include <cstdint>

#include "layers.hpp"
#include "row_dot.hpp"
#include "rows.cuh"

namespace sg::cuda {
inline namespace row_dot_cu {

// The sum of the products of elements first, first + step, ..., `count` neighbours at a time; fewer at the row's end.
// Parts of the sum keep its error small.
template <class T, int count>
__device__ typename arithmetic<T>::sum sum_of_products(const T *a, std::int64_t a_col, const T *b, std::int64_t b_col,
                                                       std::int64_t cols, std::int64_t first, std::int64_t step) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  constexpr int steps_of_part = 64;
  real total = 0;
  for (std::int64_t j = first; j < cols;) {
    real part = 0;
    for (int n = 0; n < steps_of_part && j < cols; ++n, j += step) {
      if (count > 1 && j + count <= cols) {
        const pack<T, count> x = load_pack<count>(a + j), y = load_pack<count>(b + j);
#pragma unroll
        for (int v = 0; v < count; ++v) part += ops::widened(x.at[v]) * ops::widened(y.at[v]);
      } else {
        for (std::int64_t k = j; k < j + count && k < cols; ++k)
          part += ops::widened(a[k * a_col]) * ops::widened(b[k * b_col]);
      }
    }
    total += part;
  }
  return total;
}

// Contiguous rows, `threads` threads for each.
template <class T, int count, int threads>
__global__ void row_dot_kernel(sg_backend_row_dot what) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  const int rows_of_block = int(blockDim.x) / threads, thread = int(threadIdx.x) % threads;
  for (std::int64_t i = std::int64_t(blockIdx.x) * rows_of_block + threadIdx.x / threads; i < what.rows;
       i += std::int64_t(gridDim.x) * rows_of_block) {
    const T *a = static_cast<const T *>(what.a) + i * what.a_row, *b = static_cast<const T *>(what.b) + i * what.b_row;
    real sum = sum_of_products<T, count>(a, 1, b, 1, what.cols, std::int64_t(thread) * count, threads * count);
    sum = combined_over<threads>(sum, [](real x, real y) { return x + y; });
    if (thread == 0) static_cast<T *>(what.y)[i * what.y_row] = ops::rounded(sum);
  }
}

constexpr int neighbours = 32, threads_of_row = 8;

template <class T>
__global__ void row_dot_by_columns_kernel(sg_backend_row_dot what) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  __shared__ real of_threads[threads_of_row][neighbours + 1];
  for (std::int64_t first = std::int64_t(blockIdx.x) * neighbours; first < what.rows;
       first += std::int64_t(gridDim.x) * neighbours) {
    const std::int64_t i = first + threadIdx.x;
    const bool exists = i < what.rows;  // a thread without a row takes part in the barriers
    real sum = 0;
    if (exists)
      sum = sum_of_products<T, 1>(static_cast<const T *>(what.a) + i * what.a_row, what.a_col,
                                  static_cast<const T *>(what.b) + i * what.b_row, what.b_col, what.cols, threadIdx.y,
                                  threads_of_row);
    __syncthreads();  // the sums of the previous rows have been read
    of_threads[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (!exists || threadIdx.y != 0) continue;
    for (int y = 1; y < threads_of_row; ++y) sum += of_threads[y][threadIdx.x];
    static_cast<T *>(what.y)[i * what.y_row] = ops::rounded(sum);
  }
}

template <class T, int count>
cudaError_t launch_contiguous_rows(const sg_backend_row_dot &what, cudaStream_t in) {
  constexpr int warps = block_threads / 32, long_block = 1024;
  if (what.cols <= 1024)
    row_dot_kernel<T, count, 32><<<blocks_for((what.rows + warps - 1) / warps), block_threads, 0, in>>>(what);
  else if (what.cols <= 32768)
    row_dot_kernel<T, count, block_threads><<<blocks_for(what.rows), block_threads, 0, in>>>(what);
  else
    row_dot_kernel<T, count, long_block><<<blocks_for(what.rows), long_block, 0, in>>>(what);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_typed(const sg_backend_row_dot &what, cudaStream_t in) {
  if (is_by_columns(what)) {
    const dim3 block(neighbours, threads_of_row);
    row_dot_by_columns_kernel<T><<<blocks_for((what.rows + neighbours - 1) / neighbours), block, 0, in>>>(what);
    return cudaGetLastError();
  }
  return pack_of(what) == whole_pack<T> ? launch_contiguous_rows<T, whole_pack<T>>(what, in)
                                        : launch_contiguous_rows<T, 1>(what, in);
}

}  // namespace row_dot_cu

cudaError_t launch_row_dot(const sg_backend_row_dot &what, cudaStream_t in) noexcept {
  switch (what.type) {
    case SG_DTYPE_F64: return launch_typed<double>(what, in);
    case SG_DTYPE_F32: return launch_typed<float>(what, in);
    case SG_DTYPE_F16: return launch_typed<__half>(what, in);
    case SG_DTYPE_BF16: return launch_typed<__nv_bfloat16>(what, in);
    default: return cudaErrorNotSupported;
  }
}

}  // namespace sg::cuda
