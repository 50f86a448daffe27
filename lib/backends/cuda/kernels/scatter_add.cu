// SPDX-License-Identifier: Apache-2.0
// Sums into rows of a table without atomic operations, so that results are the same at each run: the block of the first
// row with an index adds all rows that have it, in their order.
#include <cstdint>

#include "layer_types.cuh"
#include "layers.hpp"
#include "rows.cuh"

namespace sg::cuda {
inline namespace scatter_add_cu {

constexpr int scatter_warps = block_threads / 32;

// The row of the table, or -1.
__device__ std::int64_t row_of_table(const sg_backend_scatter_add &what, std::int64_t i) {
  std::int64_t index = what.index_bytes == 8 ? static_cast<const std::int64_t *>(what.indices)[i]
                                             : static_cast<const std::int32_t *>(what.indices)[i];
  if (what.from_end && index < 0) index += what.table_rows;
  return index >= 0 && index < what.table_rows ? index : -1;
}

// Whether a row before row i has its index; the same for all threads of the block, which looks at some rows at a time.
__device__ bool has_earlier(const sg_backend_scatter_add &what, std::int64_t i, std::int64_t row) {
  constexpr std::int64_t rows_of_thread = 8;
  for (std::int64_t first = 0; first < i; first += rows_of_thread * block_threads) {
    bool is_same = false;
    for (std::int64_t n = 0; n < rows_of_thread; ++n) {
      const std::int64_t j = first + n * block_threads + threadIdx.x;
      is_same = is_same || (j < i && row_of_table(what, j) == row);
    }
    if (__syncthreads_or(is_same)) return true;
  }
  return false;
}

// Blocks (., y) have rows, blocks (x, .) columns.
template <class T>
__global__ void __launch_bounds__(block_threads) scatter_add_kernel(sg_backend_scatter_add what) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  __shared__ unsigned same[scatter_warps];
  for (std::int64_t i = blockIdx.y; i < what.rows; i += gridDim.y) {
    const std::int64_t row = row_of_table(what, i);
    if (row < 0 || has_earlier(what, i, row)) continue;
    for (std::int64_t first_col = std::int64_t(blockIdx.x) * block_threads; first_col < what.cols;
         first_col += std::int64_t(gridDim.x) * block_threads) {
      const std::int64_t col = first_col + threadIdx.x;
      const bool exists = col < what.cols;  // a thread without a column takes part in the barriers
      real sum = -real(0);
      for (std::int64_t first = i; first < what.rows; first += block_threads) {
        const std::int64_t j = first + threadIdx.x;
        const unsigned matches = __ballot_sync(0xffffffffu, j < what.rows && row_of_table(what, j) == row);
        __syncthreads();  // the previous rows have been added
        if (threadIdx.x % 32 == 0) same[threadIdx.x / 32] = matches;
        __syncthreads();
        for (int w = 0; w < scatter_warps; ++w)
          for (unsigned left = same[w]; left != 0; left &= left - 1) {
            const std::int64_t from = first + w * 32 + (__ffs(int(left)) - 1);
            if (exists) sum += ops::widened(static_cast<const T *>(what.x)[from * what.x_row + col]);
          }
      }
      if (!exists) continue;
      T *to = static_cast<T *>(what.table) + row * what.table_row + col;
      *to = ops::rounded(ops::widened(*to) + sum);
    }
  }
}

}  // namespace scatter_add_cu

cudaError_t launch_scatter_add(const sg_backend_scatter_add &what, cudaStream_t in) noexcept {
  return with_layer_type(what.type, [&](auto element) {
    const std::int64_t columns = (what.cols + block_threads - 1) / block_threads;
    const dim3 grid(unsigned(columns < 1024 ? columns : 1024), unsigned(what.rows < 65535 ? what.rows : 65535));
    scatter_add_kernel<typename decltype(element)::type><<<grid, block_threads, 0, in>>>(what);
    return cudaGetLastError();
  });
}

}  // namespace sg::cuda
