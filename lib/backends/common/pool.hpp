// SPDX-License-Identifier: Apache-2.0
// The pooling of one image and its gradient, in the type of the arithmetic, on the host.
#pragma once

#include <streamgemm/backend.h>

#include <algorithm>
#include <cstdint>

#include "backends/common/rows.hpp"

namespace sg {
inline namespace common {

// The taps of a window that are in the image, in one dimension: pixels first + t * dilation for t in [begin, end).
struct tap_range {
  std::int64_t first = 0, begin = 0, end = 0;
  std::int64_t count() const noexcept { return end > begin ? end - begin : 0; }
};
inline tap_range taps_of(std::int64_t window, std::int64_t size, std::int64_t kernel, std::int64_t stride,
                         std::int64_t dilation, std::int64_t pad) noexcept {
  const std::int64_t first = window * stride - pad;
  const std::int64_t begin = first < 0 ? (-first + dilation - 1) / dilation : 0;
  const std::int64_t room = size - first;
  return {first, begin, std::min(kernel, room <= 0 ? 0 : (room + dilation - 1) / dilation)};
}

// Images of X and Y in memory of their own, in the order of the command, without gaps between channels.
template <class Real>
class pooled_image {
 public:
  explicit pooled_image(const sg_backend_pool &what) noexcept : what_(what), w_(what.of) {}

  // `x` and `y`: one image. stops(taps) is asked now and then; false: it has stopped.
  template <class Stops>
  bool pool(const Real *x, Real *y, Stops &&stops) const noexcept {
    return each_window(stops, [&](std::int64_t c, const tap_range &rows, const tap_range &cols, std::int64_t at) {
      Real result = what_.pooling == SG_POOLING_MAX ? no_extreme<Real>(true) : 0;
      each_pixel(c, rows, cols, [&](std::int64_t pixel) {
        result = what_.pooling == SG_POOLING_MAX ? extreme_of(result, x[pixel], true) : result + x[pixel];
      });
      y[at] = what_.pooling == SG_POOLING_MAX ? result : result / divisor(rows, cols);
    });
  }

  // `dx` begins as zeros. `x` is read for a maximum only.
  template <class Stops>
  bool pool_gradient(const Real *x, const Real *dy, Real *dx, Stops &&stops) const noexcept {
    return each_window(stops, [&](std::int64_t c, const tap_range &rows, const tap_range &cols, std::int64_t at) {
      if (what_.pooling != SG_POOLING_MAX) {
        const Real gradient = dy[at] / divisor(rows, cols);
        each_pixel(c, rows, cols, [&](std::int64_t pixel) { dx[pixel] += gradient; });
        return;
      }
      std::int64_t chosen = -1;
      each_pixel(c, rows, cols, [&](std::int64_t pixel) {
        const bool is_first = chosen < 0, ended = !is_first && x[chosen] != x[chosen];
        if (is_first || (!ended && (x[pixel] > x[chosen] || x[pixel] != x[pixel]))) chosen = pixel;
      });
      if (chosen >= 0) dx[chosen] += dy[at];
    });
  }

 private:
  // Of an average.
  Real divisor(const tap_range &rows, const tap_range &cols) const noexcept {
    const std::int64_t inside = rows.count() * cols.count();
    const std::int64_t count = what_.pooling == SG_POOLING_AVERAGE ? std::int64_t{w_.kernel_h} * w_.kernel_w
                                                                   : std::max<std::int64_t>(inside, 1);
    return static_cast<Real>(count);
  }
  template <class Stops, class Body>
  bool each_window(Stops &&stops, Body &&body) const noexcept {
    const bool channels_inner = w_.channel == 1 && w_.channels > 1;
    const auto window = [&](std::int64_t c, std::int64_t i, std::int64_t j) {
      body(c, taps_of(i, w_.height, w_.kernel_h, w_.stride_h, w_.dilation_h, w_.pad_top),
           taps_of(j, w_.width, w_.kernel_w, w_.stride_w, w_.dilation_w, w_.pad_left),
           c * what_.y_channel + i * what_.y_row + j * what_.y_pixel);
    };
    for (std::int64_t outer = 0; outer < (channels_inner ? 1 : w_.channels); ++outer)
      for (std::int64_t i = 0; i < w_.out_h; ++i)
        for (std::int64_t j = 0; j < w_.out_w; ++j)
          for (std::int64_t inner = 0; inner < (channels_inner ? w_.channels : 1); ++inner) {
            window(outer + inner, i, j);
            if (stops(std::int64_t{w_.kernel_h} * w_.kernel_w)) return false;
          }
    return true;
  }
  template <class Body>
  void each_pixel(std::int64_t c, const tap_range &rows, const tap_range &cols, Body &&body) const noexcept {
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      for (std::int64_t s = cols.begin; s < cols.end; ++s)
        body(c * w_.channel + (rows.first + r * w_.dilation_h) * w_.row + (cols.first + s * w_.dilation_w) * w_.pixel);
  }

  const sg_backend_pool &what_;
  const sg_backend_windows &w_;
};

}  // namespace common
}  // namespace sg
