// SPDX-License-Identifier: Apache-2.0
// Convolutions in which each group has one channel, and most of their gradients, as a kernel of its own: cuDNN has none
// that adds a bias before the one rounding, and its matrices of windows would be of one column.
#pragma once

#include <cuda_runtime_api.h>
#include <streamgemm/backend.h>

#include <cstdint>

#include "backends/common/types.hpp"

namespace sg::cuda {

// Forward, and the gradient of X of windows at each pixel, with one filter for each channel.
inline bool is_depthwise(const sg_backend_conv &c) noexcept {
  const sg_backend_windows &w = c.of;
  const bool is_gradient =
      c.gradient == SG_BACKEND_CONV_OF_X && c.out_channels == w.channels && w.stride_h == 1 && w.stride_w == 1;
  return (c.gradient == SG_BACKEND_CONV_OF_Y || is_gradient) && w.groups > 1 && w.groups == w.channels &&
         w.images > 0 && (c.type == SG_DTYPE_F64 || c.type == SG_DTYPE_F32 || is_short_float(c.type));
}

// The gradient of X as a convolution of that of Y, with the taps of each filter in the opposite order.
inline sg_backend_conv as_forward(const sg_backend_conv &c) noexcept {
  if (c.gradient == SG_BACKEND_CONV_OF_Y) return c;
  sg_backend_conv made = c;
  sg_backend_windows &w = made.of;
  const bool last = w.channel == 1 && w.pixel == w.channels;
  w.height = c.of.out_h, w.width = c.of.out_w, w.out_h = c.of.height, w.out_w = c.of.width;
  w.pad_top = w.dilation_h * (w.kernel_h - 1) - w.pad_top, w.pad_left = w.dilation_w * (w.kernel_w - 1) - w.pad_left;
  w.row = w.pixel * w.width, w.channel = last ? 1 : std::int64_t{w.height} * w.width;
  w.image = c.y_image, made.y_image = c.of.image;
  made.x = c.y, made.y = c.x;
  return made;
}
cudaError_t launch_conv_depthwise(const sg_backend_conv &what, cudaStream_t in) noexcept;

}  // namespace sg::cuda
