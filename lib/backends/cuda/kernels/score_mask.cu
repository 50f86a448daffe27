// SPDX-License-Identifier: Apache-2.0
// The masks of an attention on a block of its scores: blocks (., y) have rows, blocks (x, .) columns.
#include <cstdint>

#include "arithmetic.cuh"
#include "backends/common/score_mask.hpp"
#include "layer_types.cuh"
#include "layers.hpp"

namespace sg::cuda {
inline namespace score_mask_cu {

constexpr int mask_threads = 256;
constexpr std::int64_t columns_of_block = 8 * mask_threads;  // so that the divisions of score_row_of cost little

template <class T>
__global__ void __launch_bounds__(mask_threads) score_mask_kernel(sg_backend_score_mask what) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  const real hidden = -real(INFINITY);
  for (std::int64_t r = blockIdx.y; r < what.rows; r += gridDim.y) {
    const score_row x = score_row_of(what, r, what.query_lengths, what.key_lengths);
    real *scores = static_cast<real *>(what.scores) + r * what.scores_row;
    const T *bias = what.bias.data == nullptr
                        ? nullptr
                        : static_cast<const T *>(what.bias.data) + x.index_in(what.bias) + what.first_key;
    const std::uint8_t *visible = what.visible.data == nullptr ? nullptr
                                                               : static_cast<const std::uint8_t *>(what.visible.data) +
                                                                     x.index_in(what.visible) + what.first_key;
    for (std::int64_t j = std::int64_t(blockIdx.x) * mask_threads + threadIdx.x; j < what.cols;
         j += std::int64_t(gridDim.x) * mask_threads) {
      bool shows = j >= x.first && j < x.end;
      if (shows && visible != nullptr) shows = visible[j] != 0;
      if (shows && bias != nullptr) {
        const real added = ops::widened(bias[j]);
        scores[j] = added == hidden ? hidden : scores[j] + added;
      } else if (!shows) {
        scores[j] = hidden;
      }
    }
  }
}

}  // namespace score_mask_cu

cudaError_t launch_score_mask(const sg_backend_score_mask &what, cudaStream_t in) noexcept {
  return with_layer_type(what.bias_type, [&](auto element) {
    const std::int64_t blocks = (what.cols + columns_of_block - 1) / columns_of_block;
    const dim3 grid(unsigned(blocks < 1024 ? blocks : 1024), unsigned(what.rows < 65535 ? what.rows : 65535));
    score_mask_kernel<typename decltype(element)::type><<<grid, mask_threads, 0, in>>>(what);
    return cudaGetLastError();
  });
}

}  // namespace sg::cuda
