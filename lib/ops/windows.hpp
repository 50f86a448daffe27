// SPDX-License-Identifier: Apache-2.0
// Windows of images as a matrix, and back: the two memory-bound parts of a convolution.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

// A column of a view of images is an image. A view of the matrix has positions as rows, which are contiguous then, or
// as columns.
struct windows {
  std::int32_t channels = 1, groups = 1;  // those of the matrix
  std::int32_t image_channels = 1;        // those of an image; with channels_last, elements from pixel to pixel
  std::int32_t height = 1, width = 1;
  std::int32_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  std::int32_t pad_top = 0, pad_left = 0, out_h = 1, out_w = 1;
  bool channels_last = false;       // of the images
  bool channels_inner = false;      // of the matrix's columns: see sg_backend_windows
  bool positions_are_rows = false;  // of the matrix's views
  std::int64_t first_position = 0;  // of the matrix

  std::int64_t taps() const noexcept { return std::int64_t{kernel_h} * kernel_w; }
  std::int64_t columns() const noexcept { return channels * taps(); }
  std::int64_t positions_of_image() const noexcept { return std::int64_t{out_h} * out_w; }
  std::int64_t pixels() const noexcept { return std::int64_t{height} * width; }
  // From the first to the last element of an image; with channels_last, there may be gaps.
  std::int64_t span_of_image() const noexcept {
    return channels_last ? (pixels() - 1) * image_channels + channels : channels * pixels();
  }
  bool operator==(const windows &) const = default;
};

struct im2col : windows {
  enum : std::size_t { matrix, image };
  void begin_at(std::int64_t position) noexcept { first_position += position; }  // of a part
  bool operator==(const im2col &) const = default;
  static const operation entry;
};

struct col2im : windows {
  enum : std::size_t { image, matrix };
  bool accumulates = false;
  void begin_at(std::int64_t first_image) noexcept { first_position -= first_image * positions_of_image(); }
  bool operator==(const col2im &) const = default;
  static const operation entry;
};

}  // namespace ops

// The images of a view as a backend takes them; without the matrix.
sg_backend_windows lower_images(const ops::windows &w, const view &image) noexcept;

template <>
struct backend_kind<sg_backend_im2col> : kind_constant<SG_BACKEND_IM2COL> {};
template <>
struct backend_kind<sg_backend_col2im> : kind_constant<SG_BACKEND_COL2IM> {};

}  // namespace sg
