// SPDX-License-Identifier: Apache-2.0
// The pooling of images and its gradient: a thread for each element that is written.
#include <cstdint>

#include "layer_types.cuh"
#include "layers.hpp"
#include "rows.cuh"

namespace sg::cuda {
inline namespace pool_cu {

// Pixels first + t * dilation for t in [begin, end): those of a window that are in the image, in one dimension.
struct taps {
  std::int32_t first, begin, end;
  __device__ std::int32_t count() const { return end > begin ? end - begin : 0; }
};
inline __device__ taps taps_of(std::int32_t window, std::int32_t size, std::int32_t kernel, std::int32_t stride,
                               std::int32_t dilation, std::int32_t pad) {
  const std::int64_t first = std::int64_t(window) * stride - pad, room = size - first;
  const std::int64_t begin = first < 0 ? (-first + dilation - 1) / dilation : 0;
  const std::int64_t end = room <= 0 ? 0 : (room + dilation - 1) / dilation;
  return {std::int32_t(first), std::int32_t(begin < kernel ? begin : kernel),
          std::int32_t(end < kernel ? end : kernel)};
}

// A channel of one window.
struct pooled_window {
  taps rows, cols;
  __device__ pooled_window(const sg_backend_windows &w, std::int32_t i, std::int32_t j)
      : rows(taps_of(i, w.height, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top)),
        cols(taps_of(j, w.width, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left)) {}

  // Calls body(offset of the pixel).
  template <class Body>
  __device__ void each(const sg_backend_windows &w, Body body) const {
    for (std::int32_t r = rows.begin; r < rows.end; ++r)
      for (std::int32_t s = cols.begin; s < cols.end; ++s)
        body(std::int64_t(rows.first + r * w.dilation_h) * w.row +
             std::int64_t(cols.first + s * w.dilation_w) * w.pixel);
  }
  template <class Real>
  __device__ Real divisor(const sg_backend_pool &what) const {
    const std::int64_t inside = std::int64_t(rows.count()) * cols.count();
    if (what.pooling == SG_POOLING_AVERAGE) return Real(std::int64_t(what.of.kernel_h) * what.of.kernel_w);
    return Real(inside > 1 ? inside : 1);
  }
};

// Element `at` of an image of width x height pixels, in memory order.
struct image_element {
  std::int32_t channel, row, col;
  __device__ image_element(const sg_backend_windows &w, std::int64_t at, std::int32_t height, std::int32_t width) {
    const std::int64_t pixels = std::int64_t(height) * width;
    const bool is_last = w.channel == 1 && w.channels > 1;
    const std::int64_t pixel = is_last ? at / w.channels : at % pixels;
    channel = std::int32_t(is_last ? at % w.channels : at / pixels);
    row = std::int32_t(pixel / width), col = std::int32_t(pixel % width);
  }
};

template <class T>
__global__ void __launch_bounds__(block_threads) pool_kernel(sg_backend_pool what) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  const sg_backend_windows &w = what.of;
  const std::int64_t of_image = std::int64_t(w.channels) * w.out_h * w.out_w, all = of_image * w.images;
  for (std::int64_t i = std::int64_t(blockIdx.x) * block_threads + threadIdx.x; i < all;
       i += std::int64_t(gridDim.x) * block_threads) {
    const std::int64_t image = i / of_image, at = i % of_image;
    const image_element e(w, at, w.out_h, w.out_w);
    const pooled_window window(w, e.row, e.col);
    const T *x = static_cast<const T *>(what.x) + image * w.image + e.channel * w.channel;
    const bool is_max = what.pooling == SG_POOLING_MAX;
    real result = is_max ? -real(INFINITY) : real(0);
    window.each(w, [&](std::int64_t pixel) {
      const real value = ops::widened(x[pixel]);
      result = !is_max ? result + value : value > result || value != value ? value : result;
    });
    if (!is_max) result /= window.divisor<real>(what);
    static_cast<T *>(what.y)[image * what.y_image + at] = ops::rounded(result);
  }
}

// Whether the pixel is the window's first greatest one, or its first NaN.
template <class T>
__device__ bool is_chosen(const sg_backend_windows &w, const pooled_window &window, const T *x, std::int64_t pixel) {
  using real = typename arithmetic<T>::sum;
  std::int64_t chosen = -1;
  real best = 0;
  window.each(w, [&](std::int64_t each) {
    const real value = arithmetic<T>::widened(x[each]);
    if (chosen < 0 || (best == best && (value > best || value != value))) chosen = each, best = value;
  });
  return chosen == pixel;
}

template <class T>
__global__ void __launch_bounds__(block_threads) pool_gradient_kernel(sg_backend_pool what) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  const sg_backend_windows &w = what.of;
  const std::int64_t of_image = std::int64_t(w.channels) * w.height * w.width, all = of_image * w.images;
  for (std::int64_t i = std::int64_t(blockIdx.x) * block_threads + threadIdx.x; i < all;
       i += std::int64_t(gridDim.x) * block_threads) {
    const std::int64_t image = i / of_image, at = i % of_image;
    const image_element e(w, at, w.height, w.width);
    const std::int64_t pixel = e.row * w.row + e.col * w.pixel;
    const T *dy = static_cast<const T *>(what.dy) + image * what.y_image + e.channel * what.y_channel;
    const T *x = static_cast<const T *>(what.x);
    if (x != nullptr) x += image * w.image + e.channel * w.channel;
    real sum = 0;
    // The windows that have the pixel, from the first on.
    for (std::int32_t r = w.kernel_h - 1; r >= 0; --r) {
      const std::int64_t top = std::int64_t(e.row) + w.pad_top - std::int64_t(r) * w.dilation_h;
      if (top < 0 || top % w.stride_h != 0 || top / w.stride_h >= w.out_h) continue;
      for (std::int32_t s = w.kernel_w - 1; s >= 0; --s) {
        const std::int64_t left = std::int64_t(e.col) + w.pad_left - std::int64_t(s) * w.dilation_w;
        if (left < 0 || left % w.stride_w != 0 || left / w.stride_w >= w.out_w) continue;
        const pooled_window window(w, std::int32_t(top / w.stride_h), std::int32_t(left / w.stride_w));
        const real gradient = ops::widened(dy[top / w.stride_h * what.y_row + left / w.stride_w * what.y_pixel]);
        if (what.pooling != SG_POOLING_MAX)
          sum += gradient / window.divisor<real>(what);
        else if (is_chosen(w, window, x, pixel))
          sum += gradient;
      }
    }
    static_cast<T *>(what.dx)[image * what.dx_image + at] = ops::rounded(sum);
  }
}

}  // namespace pool_cu

cudaError_t launch_pool(const sg_backend_pool &what, cudaStream_t in) noexcept {
  return with_layer_type(what.type, [&](auto element) {
    using T = typename decltype(element)::type;
    const sg_backend_windows &w = what.of;
    const std::int64_t pixels = what.y != nullptr ? std::int64_t(w.out_h) * w.out_w : std::int64_t(w.height) * w.width;
    const unsigned grid = blocks_for((pixels * w.channels * w.images + block_threads - 1) / block_threads);
    if (what.y != nullptr)
      pool_kernel<T><<<grid, block_threads, 0, in>>>(what);
    else
      pool_gradient_kernel<T><<<grid, block_threads, 0, in>>>(what);
    return cudaGetLastError();
  });
}

}  // namespace sg::cuda
