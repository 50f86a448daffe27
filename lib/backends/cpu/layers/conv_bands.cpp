// SPDX-License-Identifier: Apache-2.0
#include "conv_bands.hpp"

#include <algorithm>

#include "backends/cpu/elements/pack.hpp"

namespace sg::cpu {
namespace {

constexpr std::int64_t ceil_of(std::int64_t x, std::int64_t y) noexcept { return (x + y - 1) / y; }
constexpr std::int64_t blocked(std::int64_t channels) noexcept {
  return channels == 1 || channels == 3 ? channels : ceil_of(channels, 16) * 16;
}

// As much as the planner reserves for them.
std::int64_t filter_bytes(const sg_backend_conv &what) noexcept {
  const std::int64_t groups = what.of.groups, in = what.of.channels / groups, out = what.out_channels / groups;
  const std::int64_t taps = std::int64_t{what.of.kernel_h} * what.of.kernel_w * element_size(what.type);
  const auto padded = [](std::int64_t channels) { return ceil_of(channels, 16) * 16; };
  return in == 1 && out == 1 ? padded(groups) * taps : groups * padded(in) * padded(out) * taps;
}

// Of a worker's memory, for commands without scratch memory.
constexpr std::int64_t own_bytes = 1 << 20;

}  // namespace

conv_bands::conv_bands(const sg_backend_conv &what) noexcept
    : what_(what), images_(what.of.images), rows_(what.of.out_h), image_parts_(1), row_parts_(1) {
  const sg_backend_windows &w = what.of;
  if (has_channels_last(w)) return;
  const std::int64_t bytes = what.scratch != nullptr ? what.scratch_bytes - filter_bytes(what) : own_bytes;
  const std::int64_t size = element_size(what.type), of_x = blocked(w.channels) * w.width * size;
  const std::int64_t of_y = blocked(what.out_channels) * w.out_w * size;
  const std::int64_t image = of_x * w.height + of_y * w.out_h;
  if (image <= bytes) {
    images_ = std::min(images_, bytes / image);
  } else {
    images_ = 1;
    const std::int64_t overlap = of_x * std::max(0, w.kernel_h - w.stride_h);
    rows_ = std::clamp<std::int64_t>((bytes - overlap) / (of_x * w.stride_h + of_y), 1, rows_);
  }
  image_parts_ = ceil_of(w.images, images_), row_parts_ = ceil_of(w.out_h, rows_);
  images_ = ceil_of(w.images, image_parts_), rows_ = ceil_of(w.out_h, row_parts_);
  image_parts_ = ceil_of(w.images, images_), row_parts_ = ceil_of(w.out_h, rows_);
}

conv_band conv_bands::at(std::int64_t index) const noexcept {
  const sg_backend_windows &w = what_.of;
  const std::int64_t size = element_size(what_.type), image = index / row_parts_ * images_;
  conv_band made{what_, std::int64_t{w.out_h} * w.out_w};
  sg_backend_windows &of = made.of.of;
  of.images = std::min(images_, w.images - image);
  std::int64_t first = 0, row = 0;
  if (row_parts_ > 1) {
    row = index % row_parts_ * rows_;
    const std::int64_t top = row * w.stride_h - w.pad_top, count = std::min(rows_, w.out_h - row);
    const std::int64_t end = std::min<std::int64_t>(w.height, top + (count - 1) * w.stride_h + w.kernel_h);
    first = std::max<std::int64_t>(0, top);
    of.height = static_cast<std::int32_t>(end - first), of.out_h = static_cast<std::int32_t>(count);
    of.pad_top = static_cast<std::int32_t>(first - top);
  }
  made.of.x = static_cast<char *>(what_.x) + (image * w.image + first * w.row) * size;
  made.of.y = static_cast<char *>(what_.y) + (image * what_.y_image + row * w.out_w) * size;
  return made;
}

}  // namespace sg::cpu
