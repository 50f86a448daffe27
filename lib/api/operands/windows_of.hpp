// SPDX-License-Identifier: Apache-2.0
// The checked sizes of images and their windows.
#pragma once

#include <streamgemm/conv.h>

#include <cstdint>

#include "ops/windows.hpp"
#include "run/order/strided_bytes.hpp"

namespace sg {

// Images as a descriptor has them.
struct given_windows {
  const char *desc;  // the descriptor's name in messages
  std::int64_t images, channels, height, width;
  std::int64_t first_channel, used_channels;  // 0: all from the first
  const sg_windows &windows;
  sg_image_layout image_layout;
  sg_filter_layout filter_layout;
};

struct checked_windows {
  ops::windows of;  // out_h or out_w 0: there are no windows
  std::int64_t images = 0;
  std::int64_t first_element = 0;  // of the first channel, in an image

  std::int64_t elements_of_image() const noexcept { return of.image_channels * of.pixels(); }
  std::int64_t positions() const noexcept { return images * of.positions_of_image(); }
};

// Throws sg::error naming the field.
checked_windows check_windows(const given_windows &x);

// The stride of `images` images of `elements` contiguous elements. Throws if they overlap.
std::int64_t checked_stride(const char *desc, const char *name, const sg_images &x, std::int64_t images,
                            std::int64_t elements);

// The bytes of the used channels.
strided_bytes image_bytes(const sg_images &x, std::int64_t stride, const checked_windows &w, sg_dtype type);

// The used channels of images as a matrix with a column for each image.
sg_matrix image_view(const sg_images &x, std::int64_t stride, const checked_windows &w, sg_dtype type);

}  // namespace sg
