// SPDX-License-Identifier: Apache-2.0
#include "api/operands/windows_of.hpp"

#include <algorithm>
#include <string>

#include "api/entry.hpp"
#include "base/checked.hpp"
#include "base/error.hpp"

namespace sg {

namespace {

using long_long = long long;

constexpr std::int64_t most_size = (std::int64_t{1} << 29) - 1;  // sums of four do not overflow 32 bits
constexpr std::int64_t most_columns = (std::int64_t{1} << 31) - 1;

void check_fields(const given_windows &x) {
  const sg_windows &w = x.windows;
  const struct {
    const char *name;
    std::int64_t value, least;
  } sizes[] = {{"channels", x.channels, 0},
               {"height", x.height, 0},
               {"width", x.width, 0},
               {"windows.kernel_h", w.kernel_h, 1},
               {"windows.kernel_w", w.kernel_w, 1},
               {"windows.stride_h", w.stride_h, 1},
               {"windows.stride_w", w.stride_w, 1},
               {"windows.dilation_h", w.dilation_h, 1},
               {"windows.dilation_w", w.dilation_w, 1},
               {"windows.pad_top", w.pad_top, 0},
               {"windows.pad_left", w.pad_left, 0},
               {"windows.pad_bottom", w.pad_bottom, 0},
               {"windows.pad_right", w.pad_right, 0}};
  const auto field = [&](const char *name) { return std::string(x.desc) + "->" + name; };
  for (const auto &each : sizes) require_range(each.value, each.least, most_size, field(each.name).c_str());
  require_range(x.images, 0, std::int64_t{1} << 40, field("images").c_str());
  require_range(x.first_channel, 0, x.channels, field("first_channel").c_str());
  require_range(x.used_channels, 0, x.channels - x.first_channel, field("used_channels").c_str());
  if (x.image_layout != SG_IMAGE_NCHW && x.image_layout != SG_IMAGE_NHWC)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->image_layout is %d, which is no layout of images", x.desc,
                int{x.image_layout});
}

// Windows in one dimension, whose names end with `side`: 'h' or 'w'.
std::int32_t out_of(const char *desc, char side, std::int64_t size, std::int64_t pads, std::int64_t kernel,
                    std::int64_t stride, std::int64_t dilation) {
  if (size == 0) return 0;
  const std::int64_t span = dilation * (kernel - 1) + 1, room = size + pads - span;
  if (room < 0)
    throw error(SG_STATUS_INVALID_ARGUMENT,
                "@%s->windows.kernel_%c is %lld, which spans %lld %s; the padded image has %lld", desc, side,
                long_long{kernel}, long_long{span}, side == 'h' ? "rows" : "columns", long_long{size + pads});
  return static_cast<std::int32_t>(room / stride + 1);
}

}  // namespace

checked_windows check_windows(const given_windows &x) {
  check_fields(x);
  const sg_windows &w = x.windows;
  checked_windows made;
  ops::windows &of = made.of;
  const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  of.image_channels = narrow(x.channels);
  of.channels = narrow(x.used_channels != 0 ? x.used_channels : x.channels - x.first_channel);
  of.height = narrow(x.height), of.width = narrow(x.width);
  of.kernel_h = narrow(w.kernel_h), of.kernel_w = narrow(w.kernel_w);
  of.stride_h = narrow(w.stride_h), of.stride_w = narrow(w.stride_w);
  of.dilation_h = narrow(w.dilation_h), of.dilation_w = narrow(w.dilation_w);
  of.pad_top = narrow(w.pad_top), of.pad_left = narrow(w.pad_left);
  if (w.kernel_h * w.kernel_w > most_columns / std::max(1, of.channels))
    throw error(SG_STATUS_INVALID_ARGUMENT,
                "@%s has %d channels in windows of %lld x %lld; columns must be at most %lld", x.desc, of.channels,
                long_long{w.kernel_h}, long_long{w.kernel_w}, long_long{most_columns});
  of.out_h = out_of(x.desc, 'h', x.height, w.pad_top + w.pad_bottom, w.kernel_h, w.stride_h, w.dilation_h);
  of.out_w = out_of(x.desc, 'w', x.width, w.pad_left + w.pad_right, w.kernel_w, w.stride_w, w.dilation_w);
  of.channels_last = x.image_layout == SG_IMAGE_NHWC;
  of.channels_inner = x.filter_layout == SG_FILTER_OHWI;
  made.images = x.images;
  made.first_element = x.first_channel * (of.channels_last ? 1 : of.pixels());
  checked_mul(checked_mul(x.images, of.positions_of_image(), "windows"), 16 * std::max<std::int64_t>(1, of.columns()),
              "windows");
  checked_mul(made.elements_of_image(), 16, "an image");
  return made;
}

std::int64_t checked_stride(const char *desc, const char *name, const sg_images &x, std::int64_t images,
                            std::int64_t elements) {
  if (x.stride != 0 && x.stride < elements && images > 1)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s.stride is %lld; an image has %lld elements", desc, name,
                long_long{x.stride}, long_long{elements});
  const std::int64_t stride = images > 1 && x.stride != 0 ? x.stride : elements;
  checked_mul(checked_mul(stride, images, "images"), 16, "images");
  return stride;
}

strided_bytes image_bytes(const sg_images &x, std::int64_t stride, const checked_windows &w, sg_dtype type) {
  const std::int64_t size = size_of(type), pixels = w.of.pixels();
  const auto *const start = static_cast<const char *>(x.data) + w.first_element * size;
  const strided_bytes::dimension images{w.images, stride * size};
  if (w.of.channels_last) return {start, w.of.channels * size, {{{pixels, w.of.image_channels * size}, images, {}}}};
  return {start, w.of.channels * pixels * size, {{images, {}, {}}}};
}

sg_matrix image_view(const sg_images &x, std::int64_t stride, const checked_windows &w, sg_dtype type) {
  const bool is_empty = w.of.channels == 0 || w.of.pixels() == 0;
  char *const data = static_cast<char *>(x.data);
  const std::int64_t rows = is_empty ? 0 : w.of.span_of_image();
  return {data && !is_empty ? data + w.first_element * size_of(type) : data,
          rows,
          w.images,
          std::max(stride, rows),
          type,
          SG_LAYOUT_COLUMN_MAJOR};
}

}  // namespace sg
