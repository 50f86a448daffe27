// SPDX-License-Identifier: Apache-2.0
// The operations of conv.h, window by window and pixel by pixel, sums in f64 for f64 and in f32 for the others,
// rounded once.
#pragma once

#include <streamgemm/backend.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "address_space.hpp"
#include "layers.hpp"

namespace sg::sim {

// Calls body(pixel, element) for each tap of a channel of a position that is in its image: the pixel's element in the
// images, and that of the matrix. A body of taps outside the image gets -1.
template <class Body>
void each_tap(const sg_backend_windows &w, std::int64_t position, std::int64_t channel, Body &&body) {
  const std::int64_t size = w.channels / w.groups, taps = std::int64_t{w.kernel_h} * w.kernel_w;
  const std::int64_t at = w.first_position + position, of_image = std::int64_t{w.out_h} * w.out_w;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    const std::int64_t column =
        w.channels_inner ? channel / size * size * taps + tap * size + channel % size : channel * taps + tap;
    const std::int64_t ih = at % of_image / w.out_w * w.stride_h + tap / w.kernel_w * w.dilation_h - w.pad_top;
    const std::int64_t iw = at % w.out_w * w.stride_w + tap % w.kernel_w * w.dilation_w - w.pad_left;
    const bool inside = ih >= 0 && ih < w.height && iw >= 0 && iw < w.width;
    body(inside ? at / of_image * w.image + channel * w.channel + ih * w.row + iw * w.pixel : -1,
         position * w.position + column * w.column);
  }
}

// The commands' own pointers are not used here and below.
inline void run_im2col(const sg_backend_im2col &what, const std::byte *x, std::byte *matrix) {
  const auto size = static_cast<std::size_t>(what.element_bytes);
  for (std::int64_t position = 0; position < what.of.positions; ++position)
    for (std::int64_t c = 0; c < what.of.channels; ++c)
      each_tap(what.of, position, c, [&](std::int64_t pixel, std::int64_t element) {
        std::byte *const to = matrix + element * what.element_bytes;
        if (pixel < 0)
          std::memset(to, 0, size);
        else
          std::memcpy(to, x + pixel * what.element_bytes, size);
      });
}

inline void run_col2im(const sg_backend_col2im &what, const std::byte *matrix, std::byte *x) {
  const sg_backend_windows &w = what.of;
  const std::int64_t of_image = std::int64_t{w.out_h} * w.out_w, pixels = std::int64_t{w.height} * w.width;
  with_layer_type(what.type, [&]<class To>() {
    using real = typename To::sum;
    std::vector<real> sums(static_cast<std::size_t>(pixels));
    for (std::int64_t n = 0; n < w.images; ++n)
      for (std::int64_t c = 0; c < w.channels; ++c) {
        sums.assign(sums.size(), 0);
        const std::int64_t lo = std::max(n * of_image, w.first_position);
        const std::int64_t hi = std::min((n + 1) * of_image, w.first_position + w.positions);
        with_layer_type(what.matrix_type, [&]<class From>() {
          for (std::int64_t at = lo; at < hi; ++at)
            each_tap(w, at - w.first_position, c, [&](std::int64_t pixel, std::int64_t element) {
              if (pixel < 0) return;
              const std::int64_t in_image = pixel - n * w.image - c * w.channel;
              const std::int64_t row = in_image / w.row, col = in_image % w.row / w.pixel;
              sums[static_cast<std::size_t>(row * w.width + col)] +=
                  static_cast<real>(From::load(stored_at<From>(matrix)[element]));
            });
        });
        for (std::int64_t i = 0; i < pixels; ++i) {
          auto &to = stored_at<To>(x)[n * w.image + c * w.channel + i / w.width * w.row + i % w.width * w.pixel];
          const real sum = sums[static_cast<std::size_t>(i)];
          to = To::store(what.accumulate ? static_cast<real>(To::load(to)) + sum : sum);
        }
      }
  });
}

inline std::uint64_t image_elements(const sg_backend_windows &w) {
  return static_cast<std::uint64_t>((w.images - 1) * w.image + (w.channels - 1) * w.channel + (w.height - 1) * w.row +
                                    (w.width - 1) * w.pixel + 1);
}
inline std::uint64_t matrix_elements(const sg_backend_windows &w) {
  const std::int64_t columns = std::int64_t{w.channels} * w.kernel_h * w.kernel_w;
  return static_cast<std::uint64_t>((w.positions - 1) * w.position + (columns - 1) * w.column + 1);
}

inline std::function<void()> work_of(const address_space &memory, const sg_backend_im2col &what) {
  const auto size = static_cast<std::uint64_t>(what.element_bytes);
  const std::byte *x = memory.device_bytes(what.x, image_elements(what.of) * size, "the images of an im2col");
  std::byte *matrix = memory.device_bytes(what.matrix, matrix_elements(what.of) * size, "the matrix of an im2col");
  return [what, x, matrix] { run_im2col(what, x, matrix); };
}

inline std::function<void()> work_of(const address_space &memory, const sg_backend_col2im &what) {
  const auto size = [](sg_dtype type) { return static_cast<std::uint64_t>(element_size(type)); };
  const std::byte *matrix = nullptr;
  if (what.matrix)
    matrix =
        memory.device_bytes(what.matrix, matrix_elements(what.of) * size(what.matrix_type), "the matrix of a col2im");
  std::byte *x = memory.device_bytes(what.x, image_elements(what.of) * size(what.type), "the images of a col2im");
  return [what, matrix, x] { run_col2im(what, matrix, x); };
}

}  // namespace sg::sim
