// SPDX-License-Identifier: Apache-2.0
// A thread computes neighbouring pixels of a row of Y, in a pack of channels where these are neighbours, so that it
// reads each pixel of X once for all windows that have it.
#include <algorithm>
#include <cstdint>

#include "arithmetic.cuh"
#include "conv_depthwise.hpp"
#include "layer_types.cuh"
#include "pack.cuh"

namespace sg::cuda {
inline namespace conv_depthwise_cu {

constexpr int threads = 128;

struct call {
  sg_backend_windows w;
  const void *x, *filters, *bias;
  void *y;
  std::int64_t y_image;
  std::int32_t out_channels, of_channel;  // filters of each channel
  sg_activation activation;
  std::int64_t runs;  // of pixels, in a row of Y
  std::int64_t work;  // threads
  bool flips;         // the taps of each filter
};

// kernel: rows and columns of the windows; 0: any. dense: windows of neighbours share pixels (stride and dilation 1).
template <class T, int count, int kernel, int pixels, bool last>
__global__ void __launch_bounds__(threads) depthwise_kernel(const __grid_constant__ call c) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  const sg_backend_windows &w = c.w;
  const int rows = kernel > 0 ? kernel : w.kernel_h, columns = kernel > 0 ? kernel : w.kernel_w, taps = rows * columns;
  const auto tap_of = [&](int tap) { return c.flips ? taps - 1 - tap : tap; };
  const std::int32_t packs = c.out_channels / count;
  for (std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x; i < c.work;
       i += std::int64_t(gridDim.x) * threads) {
    // Of images whose channels are neighbours these change first; otherwise the pixels.
    std::int64_t rest = i;
    std::int32_t channel, run;
    if (last) {
      channel = std::int32_t(rest % packs) * count, rest /= packs;
      run = std::int32_t(rest % c.runs), rest /= c.runs;
    } else {
      run = std::int32_t(rest % c.runs), rest /= c.runs;
    }
    const auto row = std::int32_t(rest % w.out_h);
    rest /= w.out_h;
    if (!last) channel = std::int32_t(rest % c.out_channels), rest /= c.out_channels;
    const std::int64_t image = rest;
    const std::int32_t first = run * pixels, from_channel = c.of_channel == 1 ? channel : channel / c.of_channel;
    const T *const x = static_cast<const T *>(c.x) + image * w.image + from_channel * w.channel;
    const T *const filters = static_cast<const T *>(c.filters) + std::int64_t(channel) * taps;
    real sums[pixels][count] = {};
    const std::int32_t top = row * w.stride_h - w.pad_top, left = first * w.stride_w - w.pad_left;
#pragma unroll(kernel > 0 ? kernel : 1)
    for (int kh = 0; kh < rows; ++kh) {
      const std::int32_t from_row = top + kh * w.dilation_h;
      if (from_row < 0 || from_row >= w.height) continue;
      const T *const line = x + from_row * w.row;
      if constexpr (kernel > 0) {  // of stride and dilation 1
        real of_row[kernel][count];
#pragma unroll
        for (int kw = 0; kw < kernel; ++kw)
#pragma unroll
          for (int v = 0; v < count; ++v) of_row[kw][v] = ops::widened(filters[v * taps + tap_of(kh * kernel + kw)]);
#pragma unroll
        for (int at = 0; at < pixels + kernel - 1; ++at) {
          const std::int32_t column = left + at;
          if (column < 0 || column >= w.width) continue;
          const pack<T, count> pixel = load_pack<count>(line + column * w.pixel);
#pragma unroll
          for (int p = 0; p < pixels; ++p)
            if (at - p >= 0 && at - p < kernel)
#pragma unroll
              for (int v = 0; v < count; ++v) sums[p][v] += ops::widened(pixel.at[v]) * of_row[at - p][v];
        }
      } else {
        for (int kw = 0; kw < columns; ++kw)
#pragma unroll
          for (int p = 0; p < pixels; ++p) {
            const std::int32_t column = left + p * w.stride_w + kw * w.dilation_w;
            if (column < 0 || column >= w.width) continue;
            const pack<T, count> pixel = load_pack<count>(line + column * w.pixel);
#pragma unroll
            for (int v = 0; v < count; ++v)
              sums[p][v] += ops::widened(pixel.at[v]) * ops::widened(filters[v * taps + tap_of(kh * columns + kw)]);
          }
      }
    }
    const T *const bias = static_cast<const T *>(c.bias);
    T *const y = static_cast<T *>(c.y) + image * c.y_image;
#pragma unroll
    for (int p = 0; p < pixels; ++p) {
      const std::int32_t column = first + p;
      if (column >= w.out_w) continue;
      pack<T, count> out;
#pragma unroll
      for (int v = 0; v < count; ++v) {
        const real with_bias = sums[p][v] + (bias == nullptr ? real(0) : ops::widened(bias[channel + v]));
        out.at[v] = ops::rounded(activated(with_bias, c.activation));
      }
      const std::int64_t pixel = std::int64_t(row) * w.out_w + column;
      store_pack(last ? y + pixel * c.out_channels + channel : y + channel * std::int64_t(w.out_h) * w.out_w + pixel,
                 out);
    }
  }
}

template <class T, int count, int kernel, int pixels, bool last>
cudaError_t launch(call c, cudaStream_t in) {
  c.runs = (c.w.out_w + pixels - 1) / pixels;
  c.work = c.w.images * c.w.out_h * c.runs * (c.out_channels / count);
  const std::int64_t blocks = std::min<std::int64_t>((c.work + threads - 1) / threads, 1 << 20);
  depthwise_kernel<T, count, kernel, pixels, last><<<unsigned(blocks), threads, 0, in>>>(c);
  return cudaGetLastError();
}

template <class T, int count, bool last>
cudaError_t launch_by_size(const call &c, cudaStream_t in) {
  constexpr int pixels = 4;
  const sg_backend_windows &w = c.w;
  const bool is_dense = w.stride_h == 1 && w.stride_w == 1 && w.dilation_h == 1 && w.dilation_w == 1 &&
                        w.kernel_h == w.kernel_w && w.out_w >= pixels;
  if (is_dense && w.kernel_h == 3) return launch<T, count, 3, pixels, last>(c, in);
  if (is_dense && w.kernel_h == 5) return launch<T, count, 5, pixels, last>(c, in);
  if (is_dense && w.kernel_h == 7) return launch<T, count, 7, pixels, last>(c, in);
  return launch<T, count, 0, 1, last>(c, in);
}

}  // namespace conv_depthwise_cu

cudaError_t launch_conv_depthwise(const sg_backend_conv &given, cudaStream_t in) noexcept {
  const sg_backend_conv what = as_forward(given);
  call c{};
  c.flips = what.gradient == SG_BACKEND_CONV_OF_X;
  c.w = what.of;
  c.x = what.x, c.filters = what.w, c.bias = what.bias, c.y = what.y;
  c.y_image = what.y_image;
  c.out_channels = what.out_channels, c.of_channel = what.out_channels / what.of.channels;
  c.activation = what.activation;
  const bool last = what.of.channel == 1 && what.of.pixel == what.of.channels;
  return with_layer_type(what.type, [&](auto element) {
    using T = typename decltype(element)::type;
    constexpr int count = int(8 / sizeof(T));  // wider packs leave too few registers for the filters
    const std::int64_t size = sizeof(T);
    if (!last) return launch_by_size<T, 1, false>(c, in);
    const bool in_packs = count > 1 && c.of_channel == 1 &&
                          are_aligned({{c.x, count * size, 2, (what.of.pixel | what.of.row | what.of.image) * size},
                                       {c.y, count * size, 2, (what.out_channels | what.y_image) * size}}) &&
                          what.out_channels % count == 0;
    return in_packs ? launch_by_size<T, count, true>(c, in) : launch_by_size<T, 1, true>(c, in);
  });
}

}  // namespace sg::cuda
