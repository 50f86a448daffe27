// SPDX-License-Identifier: Apache-2.0
// Windows of images as a matrix and their sums, against the definition; whatever is no element keeps its bytes.
#include "ops/windows.hpp"

#include <cstring>
#include <random>
#include <sstream>
#include <vector>

#include "gemm_case.hpp"
#include "ops/conv.hpp"
#include "support/sanitizers.hpp"

namespace sg::test {
namespace {

class windows : public conformance {
 protected:
  std::int64_t below(std::int64_t n) { return std::int64_t(random_() % std::uint64_t(n)); }

  // Any geometry; NHWC images, the order of columns and the matrix's layout too. Positions are those of the images, or
  // some of them.
  sg_backend_windows any() {
    sg_backend_windows w{};
    const std::int64_t size = 1 + below(4);
    w.groups = std::int32_t(1 + below(3)), w.channels = std::int32_t(size * w.groups);
    w.images = 1 + below(3), w.height = std::int32_t(1 + below(9)), w.width = std::int32_t(1 + below(9));
    const auto one_dimension = [&](std::int32_t extent, std::int32_t &kernel, std::int32_t &stride,
                                   std::int32_t &dilation, std::int32_t &pad, std::int32_t &out) {
      do {
        kernel = std::int32_t(1 + below(4)), stride = std::int32_t(1 + below(3)), dilation = std::int32_t(1 + below(2));
        pad = std::int32_t(below(4));
        const std::int64_t room = extent + pad + below(3) - dilation * (kernel - 1) - 1;
        out = room < 0 ? 0 : std::int32_t(room / stride + 1);
      } while (out == 0);
    };
    one_dimension(w.height, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top, w.out_h);
    one_dimension(w.width, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left, w.out_w);
    w.channels_inner = std::int32_t(below(2));
    const bool last = below(2);
    w.channel = last ? 1 : w.height * w.width;
    w.pixel = last ? w.channels + below(3) : 1;
    w.row = w.width * w.pixel;
    w.image = (last ? w.height * w.row : w.channels * w.channel) + below(3);
    const std::int64_t all = w.images * w.out_h * w.out_w, columns = std::int64_t{w.channels} * w.kernel_h * w.kernel_w;
    w.positions = all;
    if (below(2)) w.first_position = below(all), w.positions = 1 + below(all - w.first_position);
    w.position = below(2) ? 1 : columns + below(3);
    w.column = w.position == 1 ? w.positions + below(3) : 1;
    return w;
  }

  static std::int64_t column(const sg_backend_windows &w, std::int64_t c, std::int64_t tap) {
    const std::int64_t taps = w.kernel_h * w.kernel_w, size = w.channels / w.groups, group = c / size;
    return w.channels_inner ? group * size * taps + tap * size + c % size : c * taps + tap;
  }
  // each(element of the images or -1, element of the matrix), in the order of the taps for each pixel.
  template <class Each>
  static void each_element(const sg_backend_windows &w, Each &&each) {
    for (std::int64_t kh = 0; kh < w.kernel_h; ++kh)
      for (std::int64_t kw = 0; kw < w.kernel_w; ++kw)
        for (std::int64_t n = 0; n < w.images; ++n)
          for (std::int64_t oh = 0; oh < w.out_h; ++oh)
            for (std::int64_t ow = 0; ow < w.out_w; ++ow) {
              const std::int64_t row = (n * w.out_h + oh) * w.out_w + ow - w.first_position;
              if (row < 0 || row >= w.positions) continue;
              for (std::int64_t c = 0; c < w.channels; ++c) {
                const std::int64_t ih = oh * w.stride_h - w.pad_top + kh * w.dilation_h;
                const std::int64_t iw = ow * w.stride_w - w.pad_left + kw * w.dilation_w;
                const bool inside = ih >= 0 && ih < w.height && iw >= 0 && iw < w.width;
                each(inside ? n * w.image + c * w.channel + ih * w.row + iw * w.pixel : -1,
                     row * w.position + column(w, c, kh * w.kernel_w + kw) * w.column);
              }
            }
  }
  static std::int64_t image_elements(const sg_backend_windows &w) { return w.images * w.image + w.pixel; }
  static std::int64_t matrix_elements(const sg_backend_windows &w) {
    const std::int64_t columns = std::int64_t{w.channels} * w.kernel_h * w.kernel_w;
    return w.position == 1 ? columns * w.column : w.positions * w.position;
  }
  static std::string text(const sg_backend_windows &w) {
    std::ostringstream out;
    out << w.images << " images of " << w.channels << "/" << w.groups << " x " << w.height << " x " << w.width
        << ", pixel " << w.pixel << ", kernel " << w.kernel_h << " x " << w.kernel_w << ", stride " << w.stride_h
        << " x " << w.stride_w << ", dilation " << w.dilation_h << " x " << w.dilation_w << ", pads " << w.pad_top
        << ", " << w.pad_left << ", out " << w.out_h << " x " << w.out_w << ", positions " << w.first_position << " + "
        << w.positions << ", step " << w.position << ", inner " << w.channels_inner;
    return out.str();
  }
  template <class Command>
  void run(const Command &what) {
    ASSERT_TRUE(dev()->supports(what.header));
    complete(*dev(), stream_, what);
  }

  void take(const sg_backend_windows &w, std::int32_t element_bytes) {
    const std::int64_t size = element_bytes;
    std::vector<char> x(std::size_t(image_elements(w) * size)), matrix(std::size_t(matrix_elements(w) * size));
    for (char &each : x) each = char(random_());
    for (char &each : matrix) each = char(random_());
    std::vector<char> wanted = matrix;
    each_element(w, [&](std::int64_t from, std::int64_t to) {
      char *const at = wanted.data() + to * size;
      from < 0 ? std::memset(at, 0, std::size_t(size)) : std::memcpy(at, x.data() + from * size, std::size_t(size));
    });
    memory at_x(dev(), std::int64_t(x.size())), at_matrix(dev(), std::int64_t(matrix.size()));
    at_x.write(stream_, x.data());
    at_matrix.write(stream_, matrix.data());
    auto what = backend_command<sg_backend_im2col>();
    what.of = w, what.element_bytes = element_bytes;
    what.x = at_x.data(), what.matrix = at_matrix.data();
    run(what);
    at_matrix.read(stream_, matrix.data());
    ASSERT_TRUE(wanted == matrix) << text(w) << ", elements of " << element_bytes;
  }

  // Small whole numbers, whose sums every type has.
  void add(const sg_backend_windows &w, sg_dtype matrix_type, sg_dtype type, bool accumulates) {
    host_operand x(type, image_elements(w), 1, 0, 1), matrix(matrix_type, matrix_elements(w), 1, 0, 1);
    for (host_operand *each : {&x, &matrix})
      for (std::int64_t i = 0; i < each->rows; ++i) each->set(0, i, 0, real(below(9)) - 4);
    std::vector<double> wanted, elements;
    for (std::int64_t i = 0; i < x.rows; ++i) wanted.push_back(double(x.get(0, i, 0).real()));
    for (std::int64_t i = 0; i < matrix.rows; ++i) elements.push_back(double(matrix.get(0, i, 0).real()));
    const std::int64_t pixels = std::int64_t{w.height} * w.width;
    for (std::int64_t i = 0; i < w.images * w.channels * pixels && !accumulates; ++i)
      wanted[std::size_t(i / (w.channels * pixels) * w.image + i / pixels % w.channels * w.channel +
                         i % pixels / w.width * w.row + i % w.width * w.pixel)] = 0;
    each_element(w, [&](std::int64_t to, std::int64_t from) {
      if (to >= 0) wanted[std::size_t(to)] += elements[std::size_t(from)];
    });
    memory at_x(dev(), std::int64_t(x.bytes.size())), at_matrix(dev(), std::int64_t(matrix.bytes.size()));
    at_x.write(stream_, x.bytes.data());
    at_matrix.write(stream_, matrix.bytes.data());
    auto what = backend_command<sg_backend_col2im>();
    what.of = w, what.matrix_type = matrix_type, what.type = type, what.accumulate = accumulates;
    what.x = at_x.data(), what.matrix = w.positions > 0 ? at_matrix.data() : nullptr;
    run(what);
    at_x.read(stream_, x.bytes.data());
    for (std::int64_t i = 0; i < x.rows; ++i)
      ASSERT_EQ(wanted[std::size_t(i)], double(x.get(0, i, 0).real()))
          << text(w) << ", " << sg::name_of(matrix_type) << " to " << sg::name_of(type) << ", element " << i
          << (accumulates ? ", accumulated" : "");
  }

  // Y = activation(conv(X, W) + bias), of numbers so small and few that every type has the sums.
  void convolve(sg_backend_windows w, sg_dtype type, bool has_bias, sg_activation activation) {
    const std::int64_t size = w.channels / w.groups, taps = std::int64_t{w.kernel_h} * w.kernel_w;
    const std::int64_t outputs = w.groups * (1 + below(5)), of_group = outputs / w.groups;
    const bool last = w.channel == 1 && w.pixel > 1;
    w.pixel = last ? w.channels : 1, w.row = w.width * w.pixel, w.channel = last ? 1 : w.height * w.width;
    w.image = std::int64_t{w.height} * w.width * w.channels;
    w.first_position = w.positions = w.position = w.column = 0;
    auto what = backend_command<sg_backend_conv>();
    what.of = w, what.type = type, what.activation = activation, what.out_channels = std::int32_t(outputs);
    const std::int64_t of_image = std::int64_t{w.out_h} * w.out_w;
    what.y_image = outputs * of_image;
    memory at_bias(dev(), outputs * size_of(type));
    what.bias = has_bias ? at_bias.data() : nullptr;
    if (!dev()->supports(what.header)) return;
    ++convolved_;
    host_operand x(type, w.images * w.image, 1, 0, 1), y(type, w.images * what.y_image, 1, 0, 1);
    host_operand filters(type, outputs * size * taps, 1, 0, 1), bias(type, outputs, 1, 0, 1);
    for (host_operand *each : {&x, &y, &filters, &bias})
      for (std::int64_t i = 0; i < each->rows; ++i) each->set(0, i, 0, real(below(3)) - 1);
    std::vector<real> wanted(std::size_t(y.rows));
    for (std::int64_t n = 0; n < w.images; ++n)
      for (std::int64_t o = 0; o < outputs; ++o)
        for (std::int64_t p = 0; p < of_image; ++p) {
          real sum = has_bias ? bias.get(0, o, 0).real() : 0;
          for (std::int64_t c = 0; c < size; ++c)
            for (std::int64_t tap = 0; tap < taps; ++tap) {
              const std::int64_t ih = p / w.out_w * w.stride_h - w.pad_top + tap / w.kernel_w * w.dilation_h;
              const std::int64_t iw = p % w.out_w * w.stride_w - w.pad_left + tap % w.kernel_w * w.dilation_w;
              if (ih < 0 || ih >= w.height || iw < 0 || iw >= w.width) continue;
              const std::int64_t channel = o / of_group * size + c;
              const std::int64_t from = n * w.image + channel * w.channel + ih * w.row + iw * w.pixel;
              const std::int64_t at = o * size * taps + (w.channels_inner ? tap * size + c : c * taps + tap);
              sum += x.get(0, from, 0).real() * filters.get(0, at, 0).real();
            }
          const std::int64_t to = n * what.y_image + (last ? p * outputs + o : o * of_image + p);
          wanted[std::size_t(to)] = activation == SG_ACTIVATION_RELU && sum < 0 ? 0 : sum;
        }
    memory at_x(dev(), std::int64_t(x.bytes.size())), at_y(dev(), std::int64_t(y.bytes.size()));
    memory at_w(dev(), std::int64_t(filters.bytes.size()));
    at_x.write(stream_, x.bytes.data());
    at_w.write(stream_, filters.bytes.data());
    at_bias.write(stream_, bias.bytes.data());
    what.x = at_x.data(), what.w = at_w.data(), what.y = at_y.data();
    const int room = below(5);  // for the filters and some rows, or less
    memory scratch(dev(), 4096 << room);
    if (room > 0) what.scratch = scratch.data(), what.scratch_bytes = 4096 << room;
    run(what);
    at_y.read(stream_, y.bytes.data());
    for (std::int64_t i = 0; i < y.rows; ++i)
      ASSERT_EQ(double(wanted[std::size_t(i)]), double(y.get(0, i, 0).real()))
          << text(w) << " to " << outputs << ", " << sg::name_of(type) << ", element " << i;
  }

  int convolved_ = 0;
  stream stream_{dev()};
  std::mt19937_64 random_{42};
};

constexpr sg_dtype real_types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};

TEST_P(windows, of_every_element_size) {
  for (int turn = 0; turn < 400 && !HasFatalFailure(); ++turn) take(any(), 1 << turn % 5);
}

TEST_P(windows, are_added_in_every_type) {
  for (int turn = 0; turn < 400 && !HasFatalFailure(); ++turn) {
    const sg_dtype type = real_types[turn % 4];
    const bool is_short = type == SG_DTYPE_F16 || type == SG_DTYPE_BF16;
    add(any(), is_short && turn % 8 < 4 ? SG_DTYPE_F32 : type, type, turn % 3 == 0);
  }
}

// A part of the images; the matrix has positions of other images.
TEST_P(windows, of_some_images_are_added) {
  for (int turn = 0; turn < 100 && !HasFatalFailure(); ++turn) {
    sg_backend_windows w = any();
    w.first_position = below(4 * w.out_h * w.out_w) - 2 * w.out_h * w.out_w;
    add(w, SG_DTYPE_F32, SG_DTYPE_F32, turn % 2 == 0);
    w.positions = 0;
    add(w, SG_DTYPE_F32, SG_DTYPE_F32, turn % 2 == 0);
  }
}

// Long rows and many channels, in which threads and vectors have more than one turn.
TEST_P(windows, of_large_images) {
  for (const bool last : {false, true})
    for (const bool by_rows : {false, true}) {
      sg_backend_windows w{};
      w.images = sg_test::sanitized ? 1 : 2, w.channels = 70, w.groups = 1, w.height = 5, w.width = 300;
      w.kernel_h = w.kernel_w = 3, w.stride_h = 1, w.stride_w = 2, w.dilation_h = w.dilation_w = 1;
      w.pad_top = w.pad_left = 1, w.out_h = 5, w.out_w = 150;
      w.channels_inner = last;
      w.channel = last ? 1 : w.height * w.width, w.pixel = last ? w.channels : 1;
      w.row = w.width * w.pixel, w.image = w.height * w.width * w.channels;
      w.positions = w.images * 750;
      w.position = by_rows ? 1 : 630, w.column = by_rows ? w.positions : 1;
      take(w, 4);
      for (const sg_dtype type : {SG_DTYPE_F32, SG_DTYPE_BF16}) add(w, SG_DTYPE_F32, type, last);
    }
}

// Where the device has a command for it.
TEST_P(windows, are_convolved) {
  for (int turn = 0; turn < 300 && !HasFatalFailure(); ++turn) {
    sg_backend_windows w = any();
    if (turn % 4 != 0) w.dilation_h = w.dilation_w = 1;
    w.out_h = (w.height + w.pad_top - w.dilation_h * (w.kernel_h - 1) - 1 + w.pad_top) / w.stride_h + 1;
    w.out_w = (w.width + w.pad_left - w.dilation_w * (w.kernel_w - 1) - 1 + w.pad_left) / w.stride_w + 1;
    if (w.out_h <= 0 || w.out_w <= 0) continue;
    convolve(w, turn % 2 ? SG_DTYPE_F32 : SG_DTYPE_BF16, turn % 3 != 0, sg_activation(turn / 2 % 2));
  }
  RecordProperty("convolved", convolved_);
}

TEST_P(windows, types_that_no_device_has) {
  auto take = backend_command<sg_backend_im2col>();
  for (const std::int32_t bytes : {0, 3, 32}) {
    take.element_bytes = bytes;
    EXPECT_FALSE(dev()->supports(take.header)) << bytes;
  }
  auto add = backend_command<sg_backend_col2im>();
  add.type = SG_DTYPE_F32, add.matrix_type = SG_DTYPE_BF16;
  EXPECT_FALSE(dev()->supports(add.header));
  add.type = add.matrix_type = SG_DTYPE_C64;
  EXPECT_FALSE(dev()->supports(add.header));
}

SG_CONFORMANCE(windows);

}  // namespace
}  // namespace sg::test
