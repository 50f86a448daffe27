// SPDX-License-Identifier: Apache-2.0
// Convolutions and their gradients: every type, layout and place of the operands against sums in extended precision,
// small workspaces, graphs, statistics, refused calls.
#include "../reference/conv.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <sstream>

#include "../reference/functions.hpp"
#include "support/harness.hpp"
#include "support/numbers.hpp"

namespace sg_test {
namespace {

using sg_reference::conv_operand;
using sg_reference::conv_shape;
using sg_reference::real;
using sg_reference::sums;

enum class place { device, pinned, pageable };

// Elements in memory of one kind, and a copy of them that the test reads and writes.
class elements {
 public:
  elements(sg_context *on, place where, sg_dtype type, std::int64_t count)
      : on_(on),
        where_(where),
        type_(type),
        copy_(std::size_t(std::max<std::int64_t>(1, count)) * sg_dtype_size(type)) {
    if (where == place::device) {  // some begin at an address that suits no vector
      const std::size_t before = count % 2 != 0 ? sg_dtype_size(type) : 0;
      EXPECT_OK(sg_buffer_create(on, before + copy_.size(), nullptr, buffer_.out()));
      EXPECT_OK(sg_buffer_data(buffer_, &data_));
      data_ = static_cast<unsigned char *>(data_) + before;
    } else if (where == place::pinned) {
      EXPECT_OK(sg_host_alloc(on, copy_.size(), &data_));
    } else {
      own_.resize(copy_.size());
      data_ = own_.data();
    }
  }
  elements(const elements &) = delete;
  ~elements() {
    if (where_ == place::pinned) {
      EXPECT_OK(sg_host_free(on_, data_));
    }
  }
  void *data() const { return data_; }
  real at(std::int64_t i) const { return load(type_, copy_.data() + i * std::int64_t(sg_dtype_size(type_))).real(); }
  void set(std::int64_t i, real value) { store(type_, copy_.data() + i * std::int64_t(sg_dtype_size(type_)), value); }
  void write() {
    if (where_ == place::device)
      EXPECT_OK(sg_copy(on_, data_, copy_.data(), copy_.size(), nullptr));
    else
      std::memcpy(data_, copy_.data(), copy_.size());
  }
  void fetch() {
    if (where_ == place::device)
      EXPECT_OK(sg_copy(on_, copy_.data(), data_, copy_.size(), nullptr));
    else
      std::memcpy(copy_.data(), data_, copy_.size());
  }
  std::int64_t count() const { return std::int64_t(copy_.size() / sg_dtype_size(type_)); }
  void fill(random_source &random) {
    for (std::int64_t i = 0; i < count(); ++i) set(i, random.real());
    write();
  }

 private:
  sg_context *on_;
  place where_;
  sg_dtype type_;
  std::vector<unsigned char> copy_, own_;
  buffer buffer_;
  void *data_ = nullptr;
};

class conv : public on_each_device {
 protected:
  place any_place() {
    return all_on_device_ ? place::device
                          : std::array{place::device, place::pinned, place::pageable}[std::size_t(random_.below(3))];
  }

  template <class Desc>
  void describe(Desc &desc, const conv_shape &s, sg_dtype type, std::uint64_t workspace) {
    desc.images = s.images, desc.channels = s.channels, desc.height = s.height, desc.width = s.width;
    desc.out_channels = s.out_channels, desc.groups = s.groups, desc.windows = s.windows;
    desc.image_layout = s.layout, desc.filter_layout = s.filter, desc.dtype = type, desc.workspace = workspace;
  }

  void require_close(const char *what, const conv_shape &s, sg_dtype type, const elements &found, const sums &wanted,
                     const std::vector<bool> &is_result, const std::vector<real> &before, real terms, real roundings) {
    const real unit = unit_of(type), sum = unit_of(type == SG_DTYPE_F64 ? SG_DTYPE_F64 : SG_DTYPE_F32);
    for (std::int64_t i = 0; i < found.count(); ++i) {
      if (!is_result[std::size_t(i)]) {
        ASSERT_EQ(before[std::size_t(i)], found.at(i)) << what << ": a gap was written: " << s.text();
        continue;
      }
      const real value = wanted.values[std::size_t(i)], magnitude = wanted.magnitudes[std::size_t(i)];
      const real allowed = 1.01L * roundings * unit * magnitude + (terms + 4) * sum * magnitude + 1e-7L * unit;
      ASSERT_LE(std::fabs(found.at(i) - value), allowed)
          << what << " " << i << " of type " << int(type) << ": " << double(found.at(i)) << " instead of "
          << double(value) << ": " << s.text();
    }
  }
  static std::vector<real> values_of(const elements &x) {
    std::vector<real> values;
    for (std::int64_t i = 0; i < x.count(); ++i) values.push_back(x.at(i));
    return values;
  }
  std::vector<bool> images_in(std::int64_t count, std::int64_t images, std::int64_t stride, std::int64_t size) {
    std::vector<bool> made(std::size_t(std::max<std::int64_t>(1, count)));
    for (std::int64_t n = 0; n < images; ++n)
      for (std::int64_t i = 0; i < size; ++i) made[std::size_t(n * stride + i)] = true;
    return made;
  }

  void forward(const conv_shape &s, sg_dtype type, bool has_bias, sg_activation activation,
               std::uint64_t workspace = 0) {
    elements x(context_, any_place(), type, s.images * s.x_stride()),
        w(context_, any_place(), type, s.filter_elements());
    elements bias(context_, any_place(), type, s.out_channels);
    elements y(context_, any_place(), type, s.images * s.y_stride());
    for (elements *each : {&x, &w, &bias, &y}) each->fill(random_);
    const std::vector<real> before = values_of(y);
    sg_conv2d_desc desc = SG_CONV2D_DESC_INIT;
    describe(desc, s, type, workspace);
    desc.x = {x.data(), s.x_stride()}, desc.y = {y.data(), s.y_stride()};
    desc.w = w.data(), desc.bias = has_bias ? bias.data() : nullptr, desc.activation = activation;
    ASSERT_OK(sg_conv2d(context_, &desc, nullptr)) << sg_last_error_message() << ": " << s.text();
    y.fetch();
    sums wanted(y.count());
    add_products(s, conv_operand::y, values_of(x), values_of(w), wanted);
    for (std::int64_t n = 0; n < s.images; ++n)
      for (std::int64_t o = 0; o < s.out_channels; ++o)
        for (std::int64_t i = 0; i < s.out_h(); ++i)
          for (std::int64_t j = 0; j < s.out_w(); ++j) {
            const std::int64_t at = s.y_at(n, o, i, j);
            if (has_bias) wanted.add(at, bias.at(o));
            real &value = wanted.values[std::size_t(at)];
            value = sg_reference::activated(activation, value);
          }
    const real terms = real(s.of_group() * s.windows.kernel_h * s.windows.kernel_w) + (activation ? 16 : 0);
    require_close("Y", s, type, y, wanted,
                  images_in(y.count(), s.images, s.y_stride(), s.out_channels * s.out_h() * s.out_w()), before, terms,
                  1);
  }

  void backward(const conv_shape &s, sg_dtype type, sg_dtype gradient, int results, bool accumulate,
                std::uint64_t workspace = 0) {
    elements x(context_, any_place(), type, s.images * s.x_stride()),
        w(context_, any_place(), type, s.filter_elements());
    elements dy(context_, any_place(), type, s.images * s.y_stride());
    elements dx(context_, any_place(), type, s.images * s.x_stride());
    elements dw(context_, any_place(), gradient, s.filter_elements()),
        dbias(context_, any_place(), gradient, s.out_channels);
    for (elements *each : {&x, &w, &dy, &dx, &dw, &dbias}) each->fill(random_);
    sg_conv2d_backward_desc desc = SG_CONV2D_BACKWARD_DESC_INIT;
    describe(desc, s, type, workspace);
    desc.dy = {dy.data(), s.y_stride()};
    if (results & 1) desc.dx = {dx.data(), s.x_stride()}, desc.w = w.data();
    if (results & 2) desc.dw = dw.data(), desc.x = {x.data(), s.x_stride()};
    if (results & 4) desc.dbias = dbias.data();
    desc.gradient_dtype = gradient == type ? sg_dtype(0) : gradient, desc.accumulate = accumulate;
    const std::vector<real> dx_before = values_of(dx), dw_before = values_of(dw), dbias_before = values_of(dbias);
    ASSERT_OK(sg_conv2d_backward(context_, &desc, nullptr)) << sg_last_error_message() << ": " << s.text();
    for (elements *each : {&dx, &dw, &dbias}) each->fetch();
    sums of_x(dx.count()), of_w(dw.count()), of_bias(dbias.count());
    add_products(s, conv_operand::x, values_of(w), values_of(dy), of_x);
    add_products(s, conv_operand::w, values_of(x), values_of(dy), of_w);
    for (std::int64_t n = 0; n < s.images; ++n)
      for (std::int64_t o = 0; o < s.out_channels; ++o)
        for (std::int64_t i = 0; i < s.out_h() * s.out_w(); ++i)
          of_bias.add(o, dy.at(s.y_at(n, o, i / s.out_w(), i % s.out_w())));
    for (std::int64_t i = 0; i < dw.count() && accumulate; ++i) of_w.add(i, dw_before[std::size_t(i)]);
    for (std::int64_t i = 0; i < dbias.count() && accumulate; ++i) of_bias.add(i, dbias_before[std::size_t(i)]);
    const auto written = [&](const elements &of, int bit, std::int64_t size) {
      return images_in(of.count(), 1, 0, results & bit ? size : 0);
    };
    const std::int64_t outputs = s.out_channels / s.groups, windows = s.images * s.out_h() * s.out_w();
    require_close("dX", s, type, dx, of_x,
                  images_in(dx.count(), results & 1 ? s.images : 0, s.x_stride(), s.channels * s.height * s.width),
                  dx_before, real(outputs * s.windows.kernel_h * s.windows.kernel_w),
                  workspace ? real(s.windows.kernel_h * s.windows.kernel_w) : 1);
    require_close("dW", s, gradient, dw, of_w, written(dw, 2, s.filter_elements()), dw_before, real(windows + 8), 1);
    require_close("dbias", s, gradient, dbias, of_bias, written(dbias, 4, s.out_channels), dbias_before,
                  real(windows + 8), 1);
  }

  conv_shape any_shape() {
    const auto below = [this](int n) { return std::int64_t(random_.below(n)); };
    conv_shape s;
    s.groups = random_.below(3) ? 1 : 1 + below(3);
    s.channels = s.groups * (1 + below(4)), s.out_channels = s.groups * (1 + below(4));
    s.images = 1 + below(5), s.height = 1 + below(9), s.width = 1 + below(9);
    s.layout = sg_image_layout(below(2)), s.filter = sg_filter_layout(below(2));
    s.gap = random_.below(3) ? 0 : below(4);
    sg_windows &w = s.windows;
    if (random_.below(4)) {
      w.kernel_h = 1 + below(4), w.kernel_w = 1 + below(4), w.stride_h = 1 + below(3), w.stride_w = 1 + below(3);
      w.dilation_h = 1 + below(2), w.dilation_w = 1 + below(2);
      w.pad_top = below(3), w.pad_left = below(3), w.pad_bottom = below(3), w.pad_right = below(3);
    }
    switch (random_.below(24)) {
      case 0: s.images = 0; break;
      case 1: s.channels = 0; break;
      case 2: s.out_channels = 0; break;
      case 3: s.height = 0; break;
      case 4: s.width = 1; break;
      default: break;
    }
    // A padded image is as large as a window.
    const auto fit = [](std::int64_t &size, std::int64_t kernel, std::int64_t dilation, std::int64_t pads) {
      if (size > 0) size = std::max(size, dilation * (kernel - 1) + 1 - pads);
    };
    fit(s.height, w.kernel_h, w.dilation_h, w.pad_top + w.pad_bottom);
    fit(s.width, w.kernel_w, w.dilation_w, w.pad_left + w.pad_right);
    return s;
  }

  bool all_on_device_ = false;
  random_source random_{17};
};

constexpr sg_dtype real_types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};

TEST_P(conv, every_shape_type_and_place) {
  for (int turn = 0; turn < 400 && !HasFatalFailure(); ++turn)
    forward(any_shape(), real_types[turn % 4], turn % 3 != 0, sg_activation(turn / 4 % 3));
}

TEST_P(conv, in_small_workspaces) {
  for (int turn = 0; turn < 200 && !HasFatalFailure(); ++turn)
    forward(any_shape(), real_types[turn % 4], true, SG_ACTIVATION_RELU, 60000 + std::uint64_t(random_.below(30000)));
}

TEST_P(conv, gradients_of_every_shape_type_and_place) {
  for (int turn = 0; turn < 400 && !HasFatalFailure(); ++turn) {
    const sg_dtype type = real_types[turn % 4];
    const bool is_short = type == SG_DTYPE_F16 || type == SG_DTYPE_BF16;
    backward(any_shape(), type, is_short && turn % 8 < 4 ? SG_DTYPE_F32 : type, 1 + turn % 7, turn % 5 < 2);
  }
}

TEST_P(conv, gradients_in_small_workspaces) {
  for (int turn = 0; turn < 200 && !HasFatalFailure(); ++turn)
    backward(any_shape(), real_types[turn % 4], real_types[turn % 4], 7, turn % 2 == 0,
             120000 + std::uint64_t(random_.below(60000)));
}

// Several blocks on several lanes, and images in several parts.
TEST_P(conv, of_images_larger_than_the_workspace) {
  for (const sg_image_layout layout : {SG_IMAGE_NCHW, SG_IMAGE_NHWC})
    for (const bool on_device : {true, false})
      for (const std::int64_t groups : {1, 2, 8}) {
        all_on_device_ = on_device;
        conv_shape s;
        s.images = 3, s.channels = 8, s.out_channels = 16, s.height = 23, s.width = 17, s.groups = groups;
        s.layout = layout, s.filter = layout == SG_IMAGE_NHWC ? SG_FILTER_OHWI : SG_FILTER_OIHW;
        s.windows = {3, 3, 1, 1, 1, 1, 1, 1, 1, 1};
        forward(s, SG_DTYPE_F32, true, SG_ACTIVATION_NONE, 20000);
        backward(s, SG_DTYPE_F32, SG_DTYPE_F32, 7, true, 60000);
        s.windows = SG_WINDOWS_INIT;
        forward(s, SG_DTYPE_BF16, true, SG_ACTIVATION_GELU, 20000);
        backward(s, SG_DTYPE_BF16, SG_DTYPE_F32, 7, false, 20000);
      }
}

TEST_P(conv, of_one_channel_in_each_group) {
  for (const sg_image_layout layout : {SG_IMAGE_NCHW, SG_IMAGE_NHWC})
    for (const sg_dtype type : real_types)
      for (const sg_windows &windows : {sg_windows{3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
                                        {5, 5, 1, 1, 1, 1, 0, 2, 2, 4},
                                        {7, 7, 1, 1, 1, 1, 3, 3, 3, 3},
                                        {3, 2, 1, 1, 2, 3, 2, 1, 1, 3},
                                        {3, 3, 2, 2, 1, 1, 1, 1, 1, 1}}) {
        all_on_device_ = true;
        conv_shape s;
        s.images = 2, s.channels = s.groups = 8, s.height = 9, s.width = 11, s.layout = layout, s.windows = windows;
        s.out_channels = 8 * (1 + random_.below(2));
        s.filter = random_.below(2) ? SG_FILTER_OHWI : SG_FILTER_OIHW;
        forward(s, type, random_.below(2), sg_activation(random_.below(3)), 0);
        s.out_channels = 8;
        backward(s, type, type, 7, false, 0);
        if (HasFailure()) return;
      }
}

// Such images look alike in both orders; their results do not.
TEST_P(conv, of_images_of_one_element) {
  for (const sg_image_layout layout : {SG_IMAGE_NCHW, SG_IMAGE_NHWC})
    for (const sg_dtype type : real_types) {
      conv_shape s;
      s.images = 8, s.out_channels = 3, s.layout = layout;
      s.windows = {3, 3, 1, 1, 1, 1, 2, 2, 2, 2};
      forward(s, type, true, SG_ACTIVATION_RELU);
    }
}

// Each run of the graph reads the images anew. On cuda it is a CUDA graph, with the workspaces.
TEST_P(conv, of_every_type_in_a_graph) {
  all_on_device_ = true;
  for (const sg_dtype type : real_types)
    for (const std::int64_t kernel : {2, 3}) {
      const std::int64_t out = 9 - kernel;
      elements x(context_, place::device, type, 2 * 8 * 64), w(context_, place::device, type, 8 * 8 * kernel * kernel);
      elements bias(context_, place::device, type, 8), y(context_, place::device, type, 2 * 8 * out * out);
      for (elements *each : {&x, &w, &bias, &y})
        for (std::int64_t i = 0; i < each->count(); ++i) each->set(i, 1);
      for (elements *each : {&w, &bias}) each->write();
      sg_conv2d_desc desc = SG_CONV2D_DESC_INIT;
      desc.x.data = x.data(), desc.y.data = y.data(), desc.w = w.data(), desc.bias = bias.data();
      desc.images = 2, desc.channels = desc.out_channels = 8, desc.height = desc.width = 8, desc.dtype = type;
      desc.windows.kernel_h = desc.windows.kernel_w = kernel, desc.activation = SG_ACTIVATION_RELU;
      sg_graph *graph = nullptr;
      ASSERT_OK(sg_graph_create(context_, &graph));
      sg_submit record = SG_SUBMIT_INIT;
      record.graph = graph;
      ASSERT_OK(sg_conv2d_async(context_, &desc, &record, nullptr));
      for (const int value : {1, -1, 2}) {
        for (std::int64_t i = 0; i < x.count(); ++i) x.set(i, value);
        x.write();
        job run;
        sg_job_statistics stats = SG_JOB_STATISTICS_INIT;
        ASSERT_OK(sg_graph_run_async(graph, nullptr, run.out()));
        ASSERT_OK(sg_job_wait(run, SG_FOREVER, nullptr));
        ASSERT_OK(sg_job_get_statistics(run, &stats));
        if (std::strncmp(GetParam(), "cuda", 4) == 0) {
          EXPECT_STREQ("graph of the device", stats.strategy);
        }
        y.fetch();
        for (std::int64_t i = 0; i < y.count(); ++i)
          ASSERT_EQ(value < 0 ? 0 : double(8 * kernel * kernel * value + 1), double(y.at(i)))
              << int(type) << ", " << kernel;
      }
      EXPECT_OK(sg_graph_release(graph));
    }
}

// The gradients of a sum of Y times R, against differences of that sum.
TEST_P(conv, gradients_are_the_limits_of_differences) {
  for (int turn = 0; turn < 12; ++turn) {
    conv_shape s = any_shape();
    s.gap = 0;
    const std::int64_t counts[] = {s.images * s.x_stride(), s.filter_elements(), s.out_channels};
    if (counts[0] == 0 || counts[1] == 0 || s.images * s.y_stride() == 0) continue;
    elements x(context_, any_place(), SG_DTYPE_F64, counts[0]), w(context_, any_place(), SG_DTYPE_F64, counts[1]);
    elements bias(context_, any_place(), SG_DTYPE_F64, counts[2]),
        y(context_, any_place(), SG_DTYPE_F64, s.images * s.y_stride());
    elements r(context_, any_place(), SG_DTYPE_F64, s.images * s.y_stride());
    elements dx(context_, any_place(), SG_DTYPE_F64, counts[0]), dw(context_, any_place(), SG_DTYPE_F64, counts[1]);
    elements dbias(context_, any_place(), SG_DTYPE_F64, counts[2]);
    for (elements *each : {&x, &w, &bias, &r}) each->fill(random_);
    sg_conv2d_desc forward = SG_CONV2D_DESC_INIT;
    describe(forward, s, SG_DTYPE_F64, 0);
    forward.x.data = x.data(), forward.w = w.data(), forward.bias = bias.data(), forward.y.data = y.data();
    sg_conv2d_backward_desc backward = SG_CONV2D_BACKWARD_DESC_INIT;
    describe(backward, s, SG_DTYPE_F64, 0);
    backward.x.data = x.data(), backward.w = w.data(), backward.dy.data = r.data();
    backward.dx.data = dx.data(), backward.dw = dw.data(), backward.dbias = dbias.data();
    ASSERT_OK(sg_conv2d_backward(context_, &backward, nullptr));
    const auto loss = [&] {
      EXPECT_OK(sg_conv2d(context_, &forward, nullptr));
      y.fetch();
      real sum = 0;
      for (std::int64_t i = 0; i < y.count(); ++i) sum += y.at(i) * r.at(i);
      return sum;
    };
    elements *const operands[] = {&x, &w, &bias}, *const gradients[] = {&dx, &dw, &dbias};
    for (int which = 0; which < 3; ++which) {
      gradients[which]->fetch();
      for (int some = 0; some < 3; ++some) {
        const std::int64_t i = random_.below(int(counts[which]));
        const real value = operands[which]->at(i), step = 0x1p-10L;
        const auto at = [&](real here) {
          operands[which]->set(i, here);
          operands[which]->write();
          return loss();
        };
        const real slope = (at(value + step) - at(value - step)) / (2 * step);
        at(value);
        ASSERT_NEAR(double(slope), double(gradients[which]->at(i)), 1e-9) << which << ", " << i << ": " << s.text();
      }
    }
  }
}

// A small convolution on the device.
class small_conv : public on_each_device {
 protected:
  void SetUp() override {
    on_each_device::SetUp();
    for (int i = 0; i < 4; ++i) {
      EXPECT_OK(sg_buffer_create(context_, sizeof(double) * 16, nullptr, memory_[i].out()));
      void *data = nullptr;
      EXPECT_OK(sg_buffer_data(memory_[i], &data));
      data_[i] = static_cast<double *>(data);
      std::vector<double> values;
      for (int j = 0; j < 16; ++j) values.push_back(i + j);
      put(i, values);
    }
  }
  void put(int which, const std::vector<double> &values) {
    EXPECT_OK(sg_copy(context_, data_[which], values.data(), sizeof(double) * values.size(), nullptr));
  }
  std::vector<double> get(int which, std::size_t count) {
    std::vector<double> values(count);
    EXPECT_OK(sg_copy(context_, values.data(), data_[which], sizeof(double) * count, nullptr));
    return values;
  }
  // 3 x 3 pixels, windows of 2 x 2, one channel.
  sg_conv2d_desc windows_of_four() {
    sg_conv2d_desc desc = SG_CONV2D_DESC_INIT;
    desc.dtype = SG_DTYPE_F64, desc.channels = desc.out_channels = 1, desc.height = desc.width = 3;
    desc.windows.kernel_h = desc.windows.kernel_w = 2;
    desc.x.data = data_[0], desc.w = data_[1], desc.y.data = data_[2];
    return desc;
  }
  sg_conv2d_backward_desc gradients() {
    sg_conv2d_backward_desc desc = SG_CONV2D_BACKWARD_DESC_INIT;
    desc.dtype = SG_DTYPE_F64, desc.channels = desc.out_channels = 1, desc.height = desc.width = 3;
    desc.windows.kernel_h = desc.windows.kernel_w = 2;
    desc.dy.data = data_[0], desc.w = data_[1], desc.dx.data = data_[2];
    return desc;
  }

  buffer memory_[4];
  double *data_[4] = {};
};

TEST_P(small_conv, follows_its_operands_and_is_recorded_in_a_graph) {
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  sg_conv2d_desc desc = windows_of_four();
  sg_conv2d_backward_desc back = gradients();
  back.dy.data = data_[2], back.dx.data = data_[3];
  ASSERT_OK(sg_conv2d_async(context_, &desc, &record, nullptr));
  ASSERT_OK(sg_conv2d_backward_async(context_, &back, &record, nullptr));
  const std::vector<double> ones(9, 1.0);
  ASSERT_OK(sg_copy_async(context_, data_[0], ones.data(), 9 * sizeof(double), nullptr, nullptr));
  ASSERT_OK(sg_graph_run_async(graph, nullptr, nullptr));
  EXPECT_EQ((std::vector<double>{10, 10, 10, 10}), get(2, 4));
  EXPECT_EQ((std::vector<double>{10, 30, 20, 40, 100, 60, 30, 70, 40}), get(3, 9));
  sg_operation_desc update = SG_OPERATION_DESC_INIT;
  update.operation = SG_OPERATION_CONV2D, update.desc = &desc;
  desc.w = data_[0];
  ASSERT_OK(sg_graph_update(graph, 0, &update));
  ASSERT_OK(sg_graph_run_async(graph, nullptr, nullptr));
  EXPECT_EQ((std::vector<double>{4, 4, 4, 4}), get(2, 4));
  desc.windows.dilation_h = 2;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 0, &update));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "operation->desc differs from submission 0"))
      << sg_last_error_message();
  update.operation = SG_OPERATION_CONV2D_BACKWARD, update.desc = &back;
  back.w = data_[0];
  ASSERT_OK(sg_graph_update(graph, 1, &update));
  back.height = 4;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 1, &update));
  ASSERT_OK(sg_graph_run_async(graph, nullptr, nullptr));
  EXPECT_EQ((std::vector<double>{4, 8, 4, 8, 16, 8, 4, 8, 4}), get(3, 9));
  EXPECT_OK(sg_graph_release(graph));
}

TEST_P(small_conv, statistics_and_the_bounded_workspace) {
  sg_conv2d_desc desc = windows_of_four();
  job handle;
  ASSERT_OK(sg_conv2d_async(context_, &desc, nullptr, handle.out()));
  ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  sg_job_statistics found = SG_JOB_STATISTICS_INIT;
  ASSERT_OK(sg_job_get_statistics(handle, &found));
  EXPECT_EQ(2 * 4 * 4, found.flops);
  EXPECT_LE(2, found.commands);
  EXPECT_EQ(0, std::strncmp("conv", found.strategy, 4));
  EXPECT_LT(0, found.bound_seconds);
  desc.workspace = 511;
  EXPECT_STATUS(SG_STATUS_OUT_OF_MEMORY, sg_conv2d(context_, &desc, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "needs 512 bytes of workspace; the limit is 511"))
      << sg_last_error_message();
}

TEST_P(small_conv, wrong_calls_name_the_field) {
  const auto bad = [&](sg_status wanted, const char *part, auto &&spoil) {
    sg_conv2d_desc desc = windows_of_four();
    spoil(desc);
    EXPECT_STATUS(wanted, sg_conv2d(context_, &desc, nullptr)) << part;
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), part)) << sg_last_error_message() << " without " << part;
  };
  const auto bad_gradients = [&](sg_status wanted, const char *part, auto &&spoil) {
    sg_conv2d_backward_desc desc = gradients();
    spoil(desc);
    EXPECT_STATUS(wanted, sg_conv2d_backward(context_, &desc, nullptr)) << part;
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), part)) << sg_last_error_message() << " without " << part;
  };
  constexpr sg_status invalid = SG_STATUS_INVALID_ARGUMENT, unsupported = SG_STATUS_UNSUPPORTED;
  const auto both = [&](sg_status wanted, const char *part, auto &&spoil) {
    bad(wanted, part, spoil);
    bad_gradients(wanted, part, spoil);
  };
  both(invalid, "desc->struct_size", [](auto &d) { d.struct_size = 8; });
  both(invalid, "desc->images is -1", [](auto &d) { d.images = -1; });
  both(invalid, "desc->groups is 0", [](auto &d) { d.groups = 0; });
  both(invalid, "desc->channels is 1 and desc->groups is 2", [](auto &d) { d.groups = 2; });
  both(invalid, "desc->out_channels is 3 and desc->groups is 2",
       [](auto &d) { d.groups = 2, d.channels = 2, d.out_channels = 3; });
  both(invalid, "desc->windows.stride_h is 0", [](auto &d) { d.windows.stride_h = 0; });
  both(invalid, "desc->filter_layout is 2", [](auto &d) { d.filter_layout = sg_filter_layout(2); });
  both(invalid, "desc->image_layout is 2", [](auto &d) { d.image_layout = sg_image_layout(2); });
  both(invalid, "desc->compute is 1", [](auto &d) { d.compute = sg_compute(1); });
  both(invalid, "desc->workspace is", [](auto &d) { d.workspace = UINT64_MAX; });
  both(unsupported, "desc->dtype is c64", [](auto &d) { d.dtype = SG_DTYPE_C64; });
  both(invalid, "desc->windows.kernel_w is 30, which spans 30 columns; the padded image has",
       [](auto &d) { d.windows.kernel_w = 30; });
  both(invalid, "desc->w is NULL", [](auto &d) { d.w = nullptr; });
  bad(invalid, "desc->x.data is NULL", [](auto &d) { d.x.data = nullptr; });
  bad(invalid, "desc->y.data is NULL", [](auto &d) { d.y.data = nullptr; });
  bad(invalid, "desc->activation is 9", [](auto &d) { d.activation = sg_activation(9); });
  bad(invalid, "desc->reserved is 1", [](auto &d) { d.reserved = 1; });
  bad(invalid, "desc->y.stride is 3; an image has 4", [](auto &d) { d.images = 2, d.y.stride = 3; });
  bad(invalid, "desc->y (", [](auto &d) { d.y.data = d.x.data; });
  bad(invalid, "which is not aligned", [](auto &d) { d.w = static_cast<const char *>(d.w) + 4; });
  bad_gradients(invalid, "desc->dy.data is NULL", [](auto &d) { d.dy.data = nullptr; });
  bad_gradients(invalid, "desc->x.data is NULL", [&](auto &d) { d.dw = data_[3]; });
  bad_gradients(invalid, "desc->accumulate is 2", [](auto &d) { d.accumulate = 2; });
  bad_gradients(invalid, "desc->gradient_dtype is f32", [](auto &d) { d.gradient_dtype = SG_DTYPE_F32; });
  bad_gradients(invalid, "desc->dx (", [](auto &d) { d.dx.data = d.dy.data; });
  EXPECT_EQ((std::vector<double>{2, 3, 4, 5, 6, 7, 8, 9, 10}), get(2, 9));
  const sg_conv2d_desc desc = windows_of_four();
  EXPECT_STATUS(invalid, sg_conv2d(context_, nullptr, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_conv2d(reinterpret_cast<sg_context *>(1), &desc, nullptr));
  sg_conv2d_backward_desc nothing = gradients();
  nothing.dx.data = nullptr, nothing.dy.data = nullptr;
  EXPECT_OK(sg_conv2d_backward(context_, &nothing, nullptr));
}

ON_EACH_DEVICE(conv);
ON_EACH_DEVICE(small_conv);

}  // namespace
}  // namespace sg_test
