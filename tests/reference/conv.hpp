// SPDX-License-Identifier: Apache-2.0
// Convolutions and their gradients by definition, in extended precision.
#pragma once

#include <streamgemm/streamgemm.h>

#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "numbers.hpp"

namespace sg_reference {

struct conv_shape {
  std::int64_t images = 1, channels = 1, height = 1, width = 1, out_channels = 1, groups = 1;
  sg_windows windows = SG_WINDOWS_INIT;
  sg_image_layout layout = SG_IMAGE_NCHW;
  sg_filter_layout filter = SG_FILTER_OIHW;
  std::int64_t gap = 0;  // between images

  static std::int64_t out(std::int64_t size, std::int64_t pads, std::int64_t kernel, std::int64_t stride,
                          std::int64_t dilation) {
    const std::int64_t room = size + pads - dilation * (kernel - 1) - 1;
    return room < 0 || size == 0 ? 0 : room / stride + 1;
  }
  std::int64_t out_h() const {
    return out(height, windows.pad_top + windows.pad_bottom, windows.kernel_h, windows.stride_h, windows.dilation_h);
  }
  std::int64_t out_w() const {
    return out(width, windows.pad_left + windows.pad_right, windows.kernel_w, windows.stride_w, windows.dilation_w);
  }
  std::int64_t of_group() const { return channels / groups; }
  std::int64_t x_stride() const { return channels * height * width + gap; }
  std::int64_t y_stride() const { return out_channels * out_h() * out_w() + gap; }
  std::int64_t x_at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return n * x_stride() + (layout == SG_IMAGE_NHWC ? (h * width + w) * channels + c : (c * height + h) * width + w);
  }
  std::int64_t y_at(std::int64_t n, std::int64_t o, std::int64_t h, std::int64_t w) const {
    return n * y_stride() +
           (layout == SG_IMAGE_NHWC ? (h * out_w() + w) * out_channels + o : (o * out_h() + h) * out_w() + w);
  }
  std::int64_t w_at(std::int64_t o, std::int64_t c, std::int64_t kh, std::int64_t kw) const {
    const std::int64_t first = o * of_group() * windows.kernel_h * windows.kernel_w;
    return first + (filter == SG_FILTER_OHWI ? (kh * windows.kernel_w + kw) * of_group() + c
                                             : (c * windows.kernel_h + kh) * windows.kernel_w + kw);
  }
  std::int64_t filter_elements() const { return out_channels * of_group() * windows.kernel_h * windows.kernel_w; }
  std::string text() const {
    std::ostringstream out;
    out << images << " x " << channels << "/" << groups << " x " << height << " x " << width << " to " << out_channels
        << " x " << out_h() << " x " << out_w() << ", kernel " << windows.kernel_h << " x " << windows.kernel_w
        << ", stride " << windows.stride_h << " x " << windows.stride_w << ", dilation " << windows.dilation_h << " x "
        << windows.dilation_w << ", pads " << windows.pad_top << " " << windows.pad_left << " " << windows.pad_bottom
        << " " << windows.pad_right << ", layouts " << int(layout) << int(filter) << ", gap " << gap;
    return out.str();
  }
};

// Sums in extended precision, and those of the magnitudes, which bound the error.
struct sums {
  std::vector<real> values, magnitudes;
  explicit sums(std::int64_t count) : values(std::size_t(count)), magnitudes(std::size_t(count)) {}
  void add(std::int64_t at, real value) {
    values[std::size_t(at)] += value;
    magnitudes[std::size_t(at)] += std::fabs(value);
  }
};

enum class conv_operand { x, w, y };

// Adds to each element of one of the three operands the products of those of the other two, in the order x, w, y.
void add_products(const conv_shape &s, conv_operand result, const std::vector<real> &a, const std::vector<real> &b,
                  sums &to);

}  // namespace sg_reference
