// SPDX-License-Identifier: Apache-2.0
// Long sums of f32 of one sign: their errors, against f64, beside those of NumPy.
#include <cmath>

#include "support/harness.hpp"
#include "support/numbers.hpp"
#include "support/sanitizers.hpp"

namespace sg_test {
namespace {

using floats = std::vector<float>;

// Sums as NumPy computes them: add.reduce of contiguous values, and a product by BLAS, in blocks of k.
float numpy_sum(const float *x, std::int64_t n) {
  if (n < 8) {
    float sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += x[i];
    return sum;
  }
  if (n <= 128) {
    float parts[8];
    std::copy_n(x, 8, parts);
    std::int64_t i = 8;
    for (; i + 8 <= n; i += 8)
      for (int l = 0; l < 8; ++l) parts[l] += x[i + l];
    float sum = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
    for (; i < n; ++i) sum += x[i];
    return sum;
  }
  const std::int64_t half = n / 2 - n / 2 % 8;
  return numpy_sum(x, half) + numpy_sum(x + half, n - half);
}
float blas_product(const float *a, const float *b, std::int64_t k) {
  constexpr std::int64_t block = 384;
  float sum = 0;
  for (std::int64_t l = 0; l < k; l += block) {
    float of_block = 0;
    for (std::int64_t i = l; i < std::min(l + block, k); ++i) of_block = std::fma(a[i], b[i], of_block);
    sum += of_block;
  }
  return sum;
}

double squared(double x) { return x * x; }

// The root of the mean squared error, relative to the values or to a unit.
class relative_errors {
 public:
  void add(double value, double exact, double unit) { squares_ += squared((value - exact) / unit), ++count_; }
  void add(double value, double exact) { add(value, exact, exact); }
  double get() const { return std::sqrt(squares_ / count_); }

 private:
  double squares_ = 0;
  int count_ = 0;
};

// Half of the last bit, which an exact sum may be rounded by, does not count against anybody.
#define EXPECT_AT_MOST_TWICE(ours, numpy) EXPECT_LE((ours).get(), 2 * std::max((numpy).get(), std::ldexp(1.0, -24)))

class device_floats {
 public:
  device_floats(sg_context *on, floats values) : on_(on), values_(std::move(values)) {
    EXPECT_OK(sg_buffer_create(on, bytes(), memory_.out()));
    EXPECT_OK(sg_buffer_data(memory_, &data_));
    EXPECT_OK(sg_copy(on, data_, values_.data(), bytes(), nullptr));
  }
  void *data() const { return data_; }
  const floats &fetch() {
    EXPECT_OK(sg_copy(on_, values_.data(), data_, bytes(), nullptr));
    return values_;
  }

 private:
  std::size_t bytes() const { return values_.size() * sizeof(float); }
  sg_context *on_;
  floats values_;
  buffer memory_;
  void *data_ = nullptr;
};

sg_matrix rows_of(const device_floats &x, std::int64_t rows, std::int64_t cols) {
  return {x.data(), rows, cols, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
}

class sums : public on_each_device {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) != "cpu") GTEST_SKIP() << "other devices have libraries and orders of their own";
    on_each_device::SetUp();
  }
  // Between 0 and 1, or all the same, whose errors do not cancel.
  floats values(std::int64_t n, bool equal) {
    floats made(std::size_t(n), 0.1f);
    for (float &each : made)
      if (!equal) each = float(std::abs(random_.real()));
    return made;
  }
  // Of columns of x, rows x cols, as the gradient of a bias.
  void check_columns(const floats &x, std::int64_t rows, std::int64_t cols, const floats &found) {
    relative_errors ours, numpy;
    floats column(static_cast<std::size_t>(rows));
    for (std::int64_t j = 0; j < cols; ++j) {
      double exact = 0;
      for (std::int64_t i = 0; i < rows; ++i) exact += double(column[std::size_t(i)] = x[std::size_t(i * cols + j)]);
      ours.add(found[std::size_t(j)], exact), numpy.add(numpy_sum(column.data(), rows), exact);
    }
    EXPECT_AT_MOST_TWICE(ours, numpy);
  }

  // A sanitizer sees no errors of sums, and each path already in the short ones.
  static std::vector<std::int64_t> lengths(std::int64_t most) {
    if (sanitized) most = std::min<std::int64_t>(most, 100'000);
    std::vector<std::int64_t> made;
    for (std::int64_t n = 1000; n <= most; n *= 10) made.push_back(n + 7);
    return made;
  }

  random_source random_{11};
};

TEST_P(sums, gradient_of_a_linear_bias) {
  for (const std::int64_t cols : {1, 6})
    for (const std::int64_t rows : lengths(cols == 1 ? 10'000'000 : 1'000'000))
      for (const bool equal : {false, true}) {
        SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols) + (equal ? " equal" : ""));
        const floats x = values(rows * cols, equal);
        device_floats dy(context_, x), dbias(context_, floats(std::size_t(cols)));
        sg_linear_backward_desc desc = SG_LINEAR_BACKWARD_DESC_INIT;
        desc.dy = rows_of(dy, rows, cols), desc.dbias = dbias.data();
        ASSERT_OK(sg_linear_backward(context_, &desc, nullptr));
        check_columns(x, rows, cols, dbias.fetch());
      }
}

// A small workspace makes many blocks.
TEST_P(sums, gradient_of_a_convolution_s_bias) {
  for (const sg_image_layout layout : {SG_IMAGE_NHWC, SG_IMAGE_NCHW})
    for (const std::int64_t pixels : lengths(1'000'000))
      for (const bool equal : {false, true}) {
        SCOPED_TRACE(std::to_string(pixels) + (layout == SG_IMAGE_NCHW ? " NCHW" : " NHWC") + (equal ? " equal" : ""));
        constexpr std::int64_t channels = 4;
        const floats x = values(pixels * channels, equal);
        device_floats dy(context_, x), in(context_, values(pixels, true)), dbias(context_, floats(channels)),
            dw(context_, floats(9 * channels));
        sg_conv2d_backward_desc desc = SG_CONV2D_BACKWARD_DESC_INIT;
        desc.dy = {dy.data(), pixels * channels}, desc.x = {in.data(), pixels};
        desc.dbias = dbias.data(), desc.dw = dw.data();
        desc.channels = 1, desc.out_channels = channels, desc.height = 1, desc.width = pixels;
        desc.windows = {3, 3, 1, 1, 1, 1, 1, 1, 1, 1};
        desc.image_layout = layout, desc.workspace = 64 << 10;
        ASSERT_OK(sg_conv2d_backward(context_, &desc, nullptr));
        floats by_pixel(x.size());
        for (std::size_t i = 0; i < x.size(); ++i)
          by_pixel[layout == SG_IMAGE_NHWC ? i : i % std::size_t(pixels) * channels + i / std::size_t(pixels)] = x[i];
        check_columns(by_pixel, pixels, channels, dbias.fetch());
      }
}

TEST_P(sums, products_of_a_long_k) {
  for (const std::int64_t n : {1, 5})
    for (const std::int64_t k : lengths(n == 1 ? 10'000'000 : 1'000'000))
      for (const bool columns : {false, true}) {
        SCOPED_TRACE(std::to_string(k) + " x " + std::to_string(n) + (columns ? " by columns" : ""));
        const floats a = values(n * k, false), b = values(n * k, false);
        device_floats at_a(context_, a), at_b(context_, b), at_c(context_, floats(std::size_t(n * n)));
        sg_gemm_desc desc = SG_GEMM_DESC_INIT;
        desc.a = rows_of(at_a, n, k), desc.b = rows_of(at_b, n, k), desc.op_b = SG_TRANSPOSE_T;
        if (columns)  // k x n without gaps is one vector for n 1, and else as many strided ones
          desc.a = rows_of(at_a, k, n), desc.b = rows_of(at_b, k, n), desc.op_a = SG_TRANSPOSE_T,
          desc.op_b = SG_TRANSPOSE_N;
        desc.c = rows_of(at_c, n, n);
        ASSERT_OK(sg_gemm(context_, &desc, nullptr));
        const floats &found = at_c.fetch();
        relative_errors ours, numpy;
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            floats of_a(static_cast<std::size_t>(k)), of_b(of_a);
            double exact = 0;
            for (std::int64_t l = 0; l < k; ++l) {
              of_a[std::size_t(l)] = a[std::size_t(columns ? l * n + i : i * k + l)];
              of_b[std::size_t(l)] = b[std::size_t(columns ? l * n + j : j * k + l)];
              exact += double(of_a[std::size_t(l)]) * double(of_b[std::size_t(l)]);
            }
            ours.add(found[std::size_t(i * n + j)], exact);
            numpy.add(blas_product(of_a.data(), of_b.data(), k), exact);
          }
        EXPECT_AT_MOST_TWICE(ours, numpy);
      }
}

TEST_P(sums, dot_products_of_long_rows) {
  for (const std::int64_t cols : lengths(1'000'000))
    for (const sg_layout layout : {SG_LAYOUT_ROW_MAJOR, SG_LAYOUT_COLUMN_MAJOR}) {
      const std::int64_t rows = cols > 100'000 ? 1 : 5;
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols) + (layout ? " by columns" : ""));
      const floats a = values(rows * cols, false), b = values(rows * cols, false);
      device_floats at_a(context_, a), at_b(context_, b), at_y(context_, floats(std::size_t(rows)));
      sg_row_dot_desc desc = SG_ROW_DOT_DESC_INIT;
      desc.a = rows_of(at_a, rows, cols), desc.b = rows_of(at_b, rows, cols), desc.y = rows_of(at_y, rows, 1);
      desc.a.layout = desc.b.layout = layout;
      ASSERT_OK(sg_row_dot(context_, &desc, nullptr));
      const floats &found = at_y.fetch();
      relative_errors ours, numpy;
      floats products(static_cast<std::size_t>(cols));
      for (std::int64_t i = 0; i < rows; ++i) {
        double exact = 0;
        for (std::int64_t j = 0; j < cols; ++j) {
          const auto at = std::size_t(layout == SG_LAYOUT_ROW_MAJOR ? i * cols + j : i + j * rows);
          exact += double(a[at]) * double(b[at]), products[std::size_t(j)] = a[at] * b[at];
        }
        ours.add(found[std::size_t(i)], exact), numpy.add(numpy_sum(products.data(), cols), exact);
      }
      EXPECT_AT_MOST_TWICE(ours, numpy);
    }
}

// Errors of y, in deviations; NumPy's mean and variance are pairwise sums.
TEST_P(sums, norms_of_a_large_mean) {
  for (const std::int64_t n : lengths(10'000'000))
    for (const double mean : {0.0, 1e3, 1e4}) {
      SCOPED_TRACE(std::to_string(n) + " of mean " + std::to_string(mean));
      floats x = values(n, false), differences(x.size());
      for (float &each : x) each = float(mean + each);
      device_floats at_x(context_, x), at_y(context_, floats(x.size()));
      sg_norm_desc desc = SG_NORM_DESC_INIT;
      desc.x = rows_of(at_x, 1, n), desc.y = rows_of(at_y, 1, n), desc.epsilon = 0;
      ASSERT_OK(sg_norm(context_, &desc, nullptr));
      const floats &found = at_y.fetch();
      double exact_mean = 0, exact_squares = 0;
      for (const float each : x) exact_mean += double(each) / double(n);
      for (const float each : x) exact_squares += squared(double(each) - exact_mean);
      const float numpy_mean = numpy_sum(x.data(), n) / float(n);
      for (std::size_t i = 0; i < x.size(); ++i) differences[i] = (x[i] - numpy_mean) * (x[i] - numpy_mean);
      const float deviation = std::sqrt(numpy_sum(differences.data(), n) / float(n));
      relative_errors ours, numpy;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double exact = (double(x[i]) - exact_mean) / std::sqrt(exact_squares / double(n));
        ours.add(found[i], exact, 1), numpy.add((x[i] - numpy_mean) / deviation, exact, 1);
      }
      EXPECT_AT_MOST_TWICE(ours, numpy);
    }
}

// The rounded mean of this row is off by a large part of a deviation.
TEST_P(sums, norm_of_a_mean_beyond_f32) {
  floats x(100);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(10000 + double(i) * 0.001);
  device_floats at_x(context_, x), at_y(context_, floats(x.size()));
  sg_norm_desc desc = SG_NORM_DESC_INIT;
  desc.x = rows_of(at_x, 1, 100), desc.y = rows_of(at_y, 1, 100), desc.epsilon = 0;
  ASSERT_OK(sg_norm(context_, &desc, nullptr));
  double mean = 0, squares = 0;
  for (const float each : x) mean += double(each) / 100;
  for (const float each : x) squares += std::pow(double(each) - mean, 2) / 100;
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR((double(x[i]) - mean) / std::sqrt(squares), at_y.fetch()[i], 1e-5);
}

TEST_P(sums, softmax_of_long_rows) {
  for (const std::int64_t n : lengths(10'000'000)) {
    SCOPED_TRACE(n);
    device_floats x(context_, floats(std::size_t(n), 0.0f)), y(context_, floats(std::size_t(n)));
    sg_softmax_desc desc = SG_SOFTMAX_DESC_INIT;
    desc.x = rows_of(x, 1, n), desc.y = rows_of(y, 1, n);
    ASSERT_OK(sg_softmax(context_, &desc, nullptr));
    EXPECT_NEAR(1, double(y.fetch().front()) * double(n), 1e-6);
  }
}

ON_EACH_DEVICE(sums);

}  // namespace
}  // namespace sg_test
