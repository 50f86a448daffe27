// SPDX-License-Identifier: Apache-2.0
// A matrix with zeros below and behind it.
#include <algorithm>

#include "kernels.hpp"
#include "pack.cuh"

namespace sg::cuda {
inline namespace pad_cu {

constexpr int packs_of_block = 32, columns_of_block = 8;

// A thread writes 16 bytes of a column. They are read element by element: columns begin anywhere.
template <class T>
__global__ void pad_kernel(padded_matrix what) {
  constexpr int count = 16 / sizeof(T);
  const std::int64_t first = (std::int64_t(blockIdx.x) * packs_of_block + threadIdx.x) * count;
  if (first >= what.dst_rows) return;
  for (std::int64_t j = std::int64_t(blockIdx.y) * columns_of_block + threadIdx.y; j < what.dst_cols;
       j += std::int64_t(gridDim.y) * columns_of_block) {
    const T *from = static_cast<const T *>(what.src) + j * what.ld + first;
    pack<T, count> held;
#pragma unroll
    for (int i = 0; i < count; ++i) held.at[i] = j < what.cols && first + i < what.rows ? from[i] : T{0};
    store_pack(static_cast<T *>(what.dst) + j * what.dst_rows + first, held);
  }
}

template <class T>
cudaError_t launch(const padded_matrix &what, cudaStream_t in) {
  constexpr std::int64_t rows_of_block = packs_of_block * (16 / sizeof(T));
  const dim3 grid(unsigned((what.dst_rows + rows_of_block - 1) / rows_of_block),
                  unsigned(std::min<std::int64_t>((what.dst_cols + columns_of_block - 1) / columns_of_block, 65535)));
  pad_kernel<T><<<grid, dim3(packs_of_block, columns_of_block), 0, in>>>(what);
  return cudaGetLastError();
}

}  // namespace pad_cu

cudaError_t launch_pad(const padded_matrix &what, cudaStream_t in) noexcept {
  return what.element_bytes == 2 ? launch<std::uint16_t>(what, in) : launch<std::uint32_t>(what, in);
}

}  // namespace sg::cuda
