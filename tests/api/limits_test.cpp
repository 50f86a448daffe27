// SPDX-License-Identifier: Apache-2.0
// The table of sg_function: functions and their derivatives at the ends of the range and of a NaN, as functions of
// elements, as their gradients, and as the activations of results.
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "support/harness.hpp"
#include "support/numbers.hpp"

namespace sg_test {
namespace {

constexpr long double infinite = std::numeric_limits<long double>::infinity();
constexpr long double nan_value = std::numeric_limits<long double>::quiet_NaN();

struct limit {
  const char *name;
  sg_function function, gradient;
  sg_activation activation;  // NONE: it has none
  long double lowest, highest, slope_lowest, slope_highest;

  long double of(long double x) const { return std::isnan(x) ? x : x < 0 ? lowest : highest; }
  long double slope(long double x) const { return std::isnan(x) ? x : x < 0 ? slope_lowest : slope_highest; }
};
constexpr limit table[] = {
    {"relu", SG_FUNCTION_RELU, SG_FUNCTION_RELU_GRADIENT, SG_ACTIVATION_RELU, 0, infinite, 0, 1},
    {"gelu", SG_FUNCTION_GELU, SG_FUNCTION_GELU_GRADIENT, SG_ACTIVATION_GELU, 0, infinite, 0, 1},
    {"gelu erf", SG_FUNCTION_GELU_ERF, SG_FUNCTION_GELU_ERF_GRADIENT, SG_ACTIVATION_NONE, 0, infinite, 0, 1},
    {"silu", SG_FUNCTION_SILU, SG_FUNCTION_SILU_GRADIENT, SG_ACTIVATION_NONE, 0, infinite, 0, 1},
    {"sigmoid", SG_FUNCTION_SIGMOID, SG_FUNCTION_SIGMOID_GRADIENT, SG_ACTIVATION_NONE, 0, 1, 0, 0},
    {"tanh", SG_FUNCTION_TANH, SG_FUNCTION_TANH_GRADIENT, SG_ACTIVATION_NONE, -1, 1, 0, 0},
};
constexpr long double ends[] = {-infinite, infinite, nan_value};
constexpr sg_dtype types_of_limits[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};

class limits : public on_each_device {
 protected:
  // Rows of `size` elements in device memory, all of a row alike; the k-th row has the k-th value.
  static constexpr std::int64_t size = 16;
  class rows {
   public:
    rows(sg_context *on, sg_dtype type, const std::vector<long double> &values)
        : on_(on), type_(type), bytes_(values.size() * size * std::size_t(sg_dtype_size(type))) {
      for (std::size_t i = 0; i < values.size(); ++i)
        for (std::size_t j = 0; j < size; ++j) store(type, at(i, j), values[i]);
      EXPECT_OK(sg_buffer_create(on, bytes_.size(), nullptr, memory_.out()));
      EXPECT_OK(sg_buffer_data(memory_, &view_.data));
      EXPECT_OK(sg_copy(on, view_.data, bytes_.data(), bytes_.size(), nullptr));
      view_ = {view_.data, std::int64_t(values.size()), size, 0, type, SG_LAYOUT_ROW_MAJOR};
    }
    const sg_matrix &view() const { return view_; }
    void set(std::size_t i, std::size_t j, long double value) {
      store(type_, at(i, j), value);
      EXPECT_OK(sg_copy(on_, view_.data, bytes_.data(), bytes_.size(), nullptr));
    }
    void expect(const std::vector<long double> &wanted, const std::string &what) {
      EXPECT_OK(sg_copy(on_, bytes_.data(), view_.data, bytes_.size(), nullptr));
      for (std::size_t i = 0; i < wanted.size(); ++i)
        for (std::size_t j = 0; j < size; ++j) {
          const long double found = load(type_, at(i, j)).real();
          const bool same = std::isnan(wanted[i]) ? std::isnan(found) : found == wanted[i];
          ASSERT_TRUE(same) << what << " of " << sg_dtype_name(type_) << ", row " << i << ": " << double(found)
                            << " instead of " << double(wanted[i]);
        }
    }

   private:
    std::uint8_t *at(std::size_t i, std::size_t j) {
      return &bytes_[(i * size + j) * std::size_t(sg_dtype_size(type_))];
    }
    sg_context *on_;
    sg_dtype type_;
    std::vector<std::uint8_t> bytes_;
    buffer memory_;
    sg_matrix view_ = {};
  };
};

TEST_P(limits, functions_of_elements) {
  for (const limit &f : table)
    for (const sg_dtype type : types_of_limits) {
      std::vector<long double> wanted;
      for (const long double x : ends) wanted.push_back(f.of(x));
      const rows x(context_, type, {std::begin(ends), std::end(ends)});
      rows y(context_, type, wanted);
      sg_elementwise_desc d = SG_ELEMENTWISE_DESC_INIT;
      d.function = f.function, d.a = x.view(), d.c = y.view();
      ASSERT_OK(sg_elementwise(context_, &d, nullptr));
      y.expect(wanted, f.name);
    }
}

TEST_P(limits, gradients) {
  for (const limit &f : table)
    for (const sg_dtype type : types_of_limits) {
      std::vector<long double> of_y, of_x, wanted;
      for (const long double x : {-infinite, infinite, nan_value, -5.0L, 5.0L})
        for (const long double dy : {2.0L, -infinite, infinite, nan_value}) {
          const bool is_finite = std::isfinite(x);
          if (is_finite && std::isfinite(dy)) continue;  // the conformance suite's
          if (is_finite && !std::isnan(dy) && f.function != SG_FUNCTION_RELU) continue;
          of_y.push_back(dy), of_x.push_back(x);
          wanted.push_back(dy * f.slope(x));
        }
      const rows dy(context_, type, of_y), x(context_, type, of_x);
      rows dx(context_, type, wanted);
      sg_elementwise_desc d = SG_ELEMENTWISE_DESC_INIT;
      d.function = f.gradient, d.a = dy.view(), d.b = x.view(), d.c = dx.view();
      ASSERT_OK(sg_elementwise(context_, &d, nullptr));
      dx.expect(wanted, std::string("gradient of ") + f.name);
    }
}

// X times the identity would be NaN: a row of X is a limit and zeros, W a row of ones and zeros.
TEST_P(limits, activations) {
  for (const limit &f : table)
    for (const sg_dtype type : types_of_limits) {
      if (f.activation == SG_ACTIVATION_NONE) continue;
      std::vector<long double> wanted, zeros(8), of_x;
      for (std::size_t i = 0; i < 8; ++i) of_x.push_back(ends[i % 3]), wanted.push_back(f.of(ends[i % 3]));
      rows x(context_, type, zeros), w(context_, type, std::vector<long double>(size)), y(context_, type, zeros);
      const rows bias(context_, type, {0});
      for (std::size_t i = 0; i < 8; ++i) x.set(i, 0, of_x[i]);
      for (std::size_t j = 0; j < size; ++j) w.set(0, j, 1);
      for (const bool has_bias : {false, true}) {
        const void *added = has_bias ? bias.view().data : nullptr;
        sg_gemm_desc gemm = SG_GEMM_DESC_INIT;
        gemm.a = x.view(), gemm.b = w.view(), gemm.c = y.view(), gemm.bias = added, gemm.activation = f.activation;
        ASSERT_OK(sg_gemm(context_, &gemm, nullptr));
        y.expect(wanted, std::string("gemm with ") + f.name);
        sg_linear_desc linear = SG_LINEAR_DESC_INIT;
        linear.x = x.view(), linear.w = w.view(), linear.y = y.view(), linear.bias = added;
        linear.activation = f.activation;
        ASSERT_OK(sg_linear(context_, &linear, nullptr));
        y.expect(wanted, std::string("linear with ") + f.name);
        for (const std::int64_t width : {1, 2}) {  // images of one pixel, or of two
          sg_conv2d_desc conv = SG_CONV2D_DESC_INIT;
          conv.images = 8 / width, conv.channels = conv.out_channels = size, conv.height = 1, conv.width = width;
          conv.image_layout = SG_IMAGE_NHWC, conv.filter_layout = SG_FILTER_OHWI, conv.dtype = type;
          rows filters(context_, type, std::vector<long double>(size));
          for (std::size_t j = 0; j < size; ++j) filters.set(j, 0, 1);
          conv.x.data = x.view().data, conv.w = filters.view().data, conv.y.data = y.view().data;
          conv.bias = added, conv.activation = f.activation;
          ASSERT_OK(sg_conv2d(context_, &conv, nullptr));
          y.expect(wanted, std::string("conv2d with ") + f.name);
        }
      }
      const rows whole(context_, type, of_x);
      sg_axpby_desc axpby = SG_AXPBY_DESC_INIT;
      axpby.a = whole.view(), axpby.c = y.view(), axpby.alpha = {1, 0}, axpby.beta = {0, 0};
      axpby.activation = f.activation;
      ASSERT_OK(sg_axpby(context_, &axpby, nullptr));
      y.expect(wanted, std::string("axpby with ") + f.name);
    }
}

ON_EACH_DEVICE(limits);

}  // namespace
}  // namespace sg_test
