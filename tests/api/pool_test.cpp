// SPDX-License-Identifier: Apache-2.0
// sg_pool2d and its gradient: drawn windows, layouts and types, NaN and ties, refused calls. The reference visits each
// pixel of each window.
#include "support/layer_case.hpp"

namespace sg_test {
namespace {

class pool : public layer_case {
 protected:
  struct shape {
    std::int64_t images, channels, height, width;
    sg_windows windows;
    bool channels_last;

    static std::int64_t out_of(std::int64_t size, std::int64_t pads, std::int64_t kernel, std::int64_t stride,
                               std::int64_t dilation) {
      return (size + pads - dilation * (kernel - 1) - 1) / stride + 1;
    }
    std::int64_t out_h() const {
      const sg_windows &w = windows;
      return out_of(height, w.pad_top + w.pad_bottom, w.kernel_h, w.stride_h, w.dilation_h);
    }
    std::int64_t out_w() const {
      const sg_windows &w = windows;
      return out_of(width, w.pad_left + w.pad_right, w.kernel_w, w.stride_w, w.dilation_w);
    }
    std::int64_t pixel(std::int64_t c, std::int64_t h, std::int64_t w) const {
      return channels_last ? (h * width + w) * channels + c : (c * height + h) * width + w;
    }
    std::int64_t pooled(std::int64_t c, std::int64_t i, std::int64_t j) const {
      return channels_last ? (i * out_w() + j) * channels + c : (c * out_h() + i) * out_w() + j;
    }
    // Pixels of a window in the image.
    std::vector<std::int64_t> window(std::int64_t c, std::int64_t i, std::int64_t j) const {
      const sg_windows &s = windows;
      std::vector<std::int64_t> all;
      for (std::int64_t r = 0; r < s.kernel_h; ++r)
        for (std::int64_t t = 0; t < s.kernel_w; ++t) {
          const std::int64_t h = i * s.stride_h + r * s.dilation_h - s.pad_top;
          const std::int64_t w = j * s.stride_w + t * s.dilation_w - s.pad_left;
          if (h >= 0 && h < height && w >= 0 && w < width) all.push_back(pixel(c, h, w));
        }
      return all;
    }
  };
  shape any_shape() {
    shape s{below(4), 1 + below(6), 1 + below(12), 1 + below(12), SG_WINDOWS_INIT, below(2) != 0};
    sg_windows &w = s.windows;
    for (int attempt = 0; attempt < 20; ++attempt) {
      w = {1 + below(4), 1 + below(4), 1 + below(3), 1 + below(3), 1 + below(2),
           1 + below(2), below(3),     below(3),     below(3),     below(3)};
      const bool fits_h = s.height + w.pad_top + w.pad_bottom > w.dilation_h * (w.kernel_h - 1);
      const bool fits_w = s.width + w.pad_left + w.pad_right > w.dilation_w * (w.kernel_w - 1);
      if (fits_h && fits_w) return s;
    }
    w = SG_WINDOWS_INIT;
    return s;
  }
  template <class Desc>
  static void set_shape(Desc &desc, const shape &s, sg_dtype type, sg_pooling pooling) {
    desc.images = s.images, desc.channels = s.channels, desc.height = s.height, desc.width = s.width;
    desc.windows = s.windows, desc.image_layout = s.channels_last ? SG_IMAGE_NHWC : SG_IMAGE_NCHW;
    desc.dtype = type, desc.pooling = pooling;
  }
};

TEST_P(pool, drawn_windows) {
  for (int attempt = 0; attempt < 120; ++attempt) {
    const shape s = any_shape();
    const sg_dtype type = any_type();
    const auto pooling = static_cast<sg_pooling>(below(3));
    const std::int64_t unpooled = s.channels * s.height * s.width, pooled = s.channels * s.out_h() * s.out_w();
    matrix x = values(type, s.images, unpooled, any_row_form()),
           y = result(context_, type, s.images, pooled, any_row_form());
    matrix dy = values(type, s.images, pooled, any_row_form()),
           dx = result(context_, type, s.images, unpooled, any_row_form());
    if (below(2))  // ties
      for (std::int64_t n = 0; n < s.images; ++n)
        for (std::int64_t i = 0; i < unpooled; ++i) x.set(n, i, std::round(2 * x.get(n, i)));
    x.send();
    sg_pool2d_desc desc = SG_POOL2D_DESC_INIT;
    set_shape(desc, s, type, pooling);
    desc.x = {x.view.data, x.view.ld}, desc.y = {y.view.data, y.view.ld};
    ASSERT_OK(sg_pool2d(context_, &desc, nullptr));
    sg_pool2d_backward_desc backward = SG_POOL2D_BACKWARD_DESC_INIT;
    set_shape(backward, s, type, pooling);
    backward.dy = {dy.view.data, dy.view.ld}, backward.dx = {dx.view.data, dx.view.ld};
    if (pooling == SG_POOLING_MAX) backward.x = desc.x;
    ASSERT_OK(sg_pool2d_backward(context_, &backward, nullptr));
    reals wanted(std::size_t(s.images * pooled)), sizes(wanted.size());
    reals gradients(std::size_t(s.images * unpooled)), of_gradients(gradients.size());
    for (std::int64_t n = 0; n < s.images; ++n)
      for (std::int64_t c = 0; c < s.channels; ++c)
        for (std::int64_t i = 0; i < s.out_h(); ++i)
          for (std::int64_t j = 0; j < s.out_w(); ++j) {
            const std::vector<std::int64_t> pixels = s.window(c, i, j);
            const std::int64_t at = s.pooled(c, i, j);
            const auto count = pooling == SG_POOLING_AVERAGE ? s.windows.kernel_h * s.windows.kernel_w
                                                             : std::max<std::int64_t>(1, std::int64_t(pixels.size()));
            long double sum = 0, size = 0, most = -infinite;
            std::int64_t chosen = -1;
            for (const std::int64_t each : pixels) {
              const long double value = x.get(n, each);
              sum += value, size += std::fabs(value);
              if (value > most) most = value, chosen = each;
            }
            const bool is_max = pooling == SG_POOLING_MAX;
            wanted[std::size_t(n * pooled + at)] = is_max ? most : sum / count;
            sizes[std::size_t(n * pooled + at)] = is_max ? 0 : size / count;
            const long double gradient = dy.get(n, at);
            for (const std::int64_t each : pixels) {
              if (is_max && each != chosen) continue;
              gradients[std::size_t(n * unpooled + each)] += is_max ? gradient : gradient / count;
              of_gradients[std::size_t(n * unpooled + each)] += std::fabs(is_max ? gradient : gradient / count);
            }
          }
    const std::string what =
        "attempt " + std::to_string(attempt) + ", " + sg_dtype_name(type) + ", pooling " + std::to_string(pooling);
    expect_near(y, wanted, sizes, what);
    expect_near(dx, gradients, of_gradients, "gradient of " + what);
  }
}

// The first NaN of a window is its maximum, and receives the gradient.
TEST_P(pool, not_a_number) {
  for (const sg_dtype type : types) {
    matrix x(context_, type, 1, 4, {}), y = result(context_, type, 1, 1, {}), dy(context_, type, 1, 1, {});
    matrix dx = result(context_, type, 1, 4, {});
    for (int i = 0; i < 4; ++i) x.set(0, i, i == 1 || i == 2 ? not_a_number : 5);
    dy.set(0, 0, 3), x.send(), dy.send();
    shape s{1, 1, 2, 2, {2, 2, 1, 1, 1, 1, 0, 0, 0, 0}, false};
    sg_pool2d_desc desc = SG_POOL2D_DESC_INIT;
    set_shape(desc, s, type, SG_POOLING_MAX);
    desc.x.data = x.view.data, desc.y.data = y.view.data;
    ASSERT_OK(sg_pool2d(context_, &desc, nullptr));
    expect_near(y, {not_a_number}, {0}, "a maximum with NaN");
    sg_pool2d_backward_desc backward = SG_POOL2D_BACKWARD_DESC_INIT;
    set_shape(backward, s, type, SG_POOLING_MAX);
    backward.x.data = x.view.data, backward.dy.data = dy.view.data, backward.dx.data = dx.view.data;
    ASSERT_OK(sg_pool2d_backward(context_, &backward, nullptr));
    expect_near(dx, {0, 3, 0, 0}, {0, 0, 0, 0}, "its gradient");
  }
}

TEST_P(pool, an_average_of_ones_is_one) {
  for (const sg_dtype type : types) {
    matrix x(context_, type, 1, 121, {}), y = result(context_, type, 1, 1, {});
    for (int i = 0; i < 121; ++i) x.set(0, i, 1);
    x.send();
    shape s{1, 1, 11, 11, {11, 11, 1, 1, 1, 1, 0, 0, 0, 0}, false};
    sg_pool2d_desc desc = SG_POOL2D_DESC_INIT;
    set_shape(desc, s, type, SG_POOLING_AVERAGE);
    desc.x.data = x.view.data, desc.y.data = y.view.data;
    ASSERT_OK(sg_pool2d(context_, &desc, nullptr));
    y.fetch();
    EXPECT_EQ(1, y.get(0, 0)) << sg_dtype_name(type);
  }
}

TEST_P(pool, refused) {
  matrix x = values(SG_DTYPE_F32, 1, 36, {}), y = result(context_, SG_DTYPE_F32, 1, 36, {});
  shape s{1, 1, 6, 6, {2, 2, 2, 2, 1, 1, 0, 0, 0, 0}, false};
  sg_pool2d_desc good = SG_POOL2D_DESC_INIT;
  set_shape(good, s, SG_DTYPE_F32, SG_POOLING_MAX);
  good.x.data = x.view.data, good.y.data = y.view.data;
  sg_pool2d_desc desc = good;
  desc.pooling = static_cast<sg_pooling>(5);
  EXPECT_REFUSED(sg_pool2d(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->pooling is 5");
  desc = good, desc.windows.stride_h = 0;
  EXPECT_REFUSED(sg_pool2d(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->windows.stride_h is 0");
  desc = good, desc.windows.kernel_h = 9;
  EXPECT_REFUSED(sg_pool2d(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->windows.kernel_h is 9");
  desc = good, desc.dtype = SG_DTYPE_C64;
  EXPECT_REFUSED(sg_pool2d(context_, &desc, nullptr), SG_STATUS_UNSUPPORTED, "desc->dtype is c64");
  desc = good, desc.y.data = desc.x.data;
  EXPECT_REFUSED(sg_pool2d(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "overlap");
  desc = good, desc.x.data = nullptr;
  EXPECT_REFUSED(sg_pool2d(context_, &desc, nullptr), SG_STATUS_INVALID_ARGUMENT, "desc->x.data is NULL");
}

ON_EACH_DEVICE(pool);

}  // namespace
}  // namespace sg_test
