// SPDX-License-Identifier: Apache-2.0
// A convolution of NCHW images in parts, each with copies of its operands in oneDNN's order that fit the scratch
// memory: several images, or rows of one.
#pragma once

#include <streamgemm/backend.h>

#include <cstdint>

namespace sg::cpu {

// Rows of Y of some images, and the rows of X that they need. `of` has the sizes of the part; its addresses and the
// strides from image to image and from channel to channel are those of the whole.
struct conv_band {
  sg_backend_conv of;
  std::int64_t y_channel = 0;  // elements from channel to channel of Y
};

inline bool has_channels_last(const sg_backend_windows &w) noexcept { return w.channel == 1 && w.pixel == w.channels; }

class conv_bands {
 public:
  // NHWC images are one part.
  explicit conv_bands(const sg_backend_conv &what) noexcept;

  std::int64_t count() const noexcept { return image_parts_ * row_parts_; }
  conv_band at(std::int64_t index) const noexcept;

 private:
  const sg_backend_conv &what_;
  std::int64_t images_, rows_;  // of a band
  std::int64_t image_parts_, row_parts_;
};

}  // namespace sg::cpu
