// SPDX-License-Identifier: Apache-2.0
// Short results are rounded once: a bias, or C, cancels the sum, so that a sum that is rounded before it is added shows
// as a large error. Every operation with an epilogue, at any address, against sums in f64.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "support/harness.hpp"
#include "support/numbers.hpp"

namespace sg_test {
namespace {

using real = long double;

real unit_of_short(sg_dtype type) { return std::ldexp(1.0L, type == SG_DTYPE_BF16 ? -8 : -11); }
real value_after(sg_activation activation, real x) {
  if (activation == SG_ACTIVATION_RELU) return x < 0 ? 0 : x;
  if (activation == SG_ACTIVATION_GELU)
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0L)) * (x + 0.044715L * x * x * x)));
  return x;
}

// Elements in device or host memory, some behind an aligned address.
class placed_elements {
 public:
  placed_elements(sg_context *on, sg_memory_kind kind, sg_dtype type, std::int64_t count, std::int64_t behind)
      : on_(on), is_on_device_(kind == SG_MEMORY_DEVICE), type_(type), bytes_(std::size_t(count) * size()) {
    const std::size_t before = std::size_t(behind) * size();
    if (is_on_device_) {
      EXPECT_OK(sg_buffer_create(on, before + bytes_.size(), nullptr, buffer_.out()));
      EXPECT_OK(sg_buffer_data(buffer_, &data_));
      data_ = static_cast<std::uint8_t *>(data_) + before;
    } else {
      own_.resize(before + bytes_.size());
      data_ = own_.data() + before;
    }
  }
  placed_elements(placed_elements &&) = default;
  void *data() const { return data_; }
  void *item(std::int64_t i) const { return static_cast<std::uint8_t *>(data_) + std::size_t(i) * size(); }
  real at(std::int64_t i) const { return load(type_, &bytes_[std::size_t(i) * size()]).real(); }
  std::vector<double> values(std::int64_t first, std::int64_t count) const {
    std::vector<double> made;
    for (std::int64_t i = first; i < first + count; ++i) made.push_back(double(at(i)));
    return made;
  }
  void set(std::int64_t i, real value) { store(type_, &bytes_[std::size_t(i) * size()], value); }
  void write() { move(data_, bytes_.data()); }
  void fetch() { move(bytes_.data(), data_); }

 private:
  std::size_t size() const { return std::size_t(sg_dtype_size(type_)); }
  void move(void *to, const void *from) {
    if (is_on_device_)
      EXPECT_OK(sg_copy(on_, to, from, bytes_.size(), nullptr));
    else
      std::memcpy(to, from, bytes_.size());
  }

  sg_context *on_;
  bool is_on_device_;
  sg_dtype type_;
  std::vector<std::uint8_t> bytes_, own_;
  buffer buffer_;
  void *data_ = nullptr;
};

// X * W + bias, or + C: rows of X are nearly alike, so that one bias cancels the sums of all of them.
struct cancelled_sums {
  sg_dtype in, out;
  std::int64_t m, n, k, items = 1;
  bool has_bias = true, adds_c = false;
  sg_activation activation = SG_ACTIVATION_NONE;
  sg_memory_kind kind = SG_MEMORY_DEVICE;
};

class rounding : public on_each_device {
 protected:
  std::int64_t any_offset() { return std::array{0, 0, 1, 5, 8, 3}[std::size_t(random_.below(6))]; }

  struct operands {
    placed_elements x, w, bias, y;
    std::vector<real> sums;  // without C and the bias
  };
  operands draw(const cancelled_sums &l) {
    const auto make = [&](sg_dtype type, std::int64_t count) {
      return placed_elements(context_, l.kind, type, count, any_offset());
    };
    operands o{make(l.in, l.items * l.m * l.k),
               make(l.in, l.items * l.k * l.n),
               make(l.out, l.items * l.n),
               make(l.out, l.items * l.m * l.n),
               {}};
    for (std::int64_t item = 0; item < l.items; ++item) {
      for (std::int64_t p = 0; p < l.k; ++p) {
        const real of_column = 1 + random_.real() / 2;
        for (std::int64_t i = 0; i < l.m; ++i)
          o.x.set((item * l.m + i) * l.k + p, of_column * (1 + (p == i % l.k ? 0.01L : 0)));
        for (std::int64_t j = 0; j < l.n; ++j) o.w.set((item * l.k + p) * l.n + j, 1 + random_.real() / 2);
      }
      const std::vector<double> x = o.x.values(item * l.m * l.k, l.m * l.k),
                                w = o.w.values(item * l.k * l.n, l.k * l.n);
      for (std::int64_t i = 0; i < l.m; ++i)
        for (std::int64_t j = 0; j < l.n; ++j) {
          double sum = 0;
          for (std::int64_t p = 0; p < l.k; ++p) sum += x[std::size_t(i * l.k + p)] * w[std::size_t(p * l.n + j)];
          o.sums.push_back(sum);
          if (i == 0) o.bias.set(item * l.n + j, -sum);
          o.y.set((item * l.m + i) * l.n + j, l.has_bias ? 0.25L : -sum);
        }
    }
    for (placed_elements *each : {&o.x, &o.w, &o.bias, &o.y}) each->write();
    return o;
  }

  void check(const cancelled_sums &l, operands &o, const char *what) {
    std::vector<real> before;
    for (std::size_t i = 0; i < o.sums.size(); ++i) before.push_back(o.y.at(std::int64_t(i)));
    o.y.fetch();
    for (std::int64_t e = 0; e < l.items * l.m * l.n; ++e) {
      const std::int64_t item = e / (l.m * l.n), j = e % l.n;
      const real sum = o.sums[std::size_t(e)];  // of positive terms
      real value = sum, magnitude = sum;
      if (l.has_bias) value += o.bias.at(item * l.n + j), magnitude += std::fabs(o.bias.at(item * l.n + j));
      if (l.adds_c) value += before[std::size_t(e)], magnitude += std::fabs(before[std::size_t(e)]);
      const real wanted = value_after(l.activation, value);
      const real allowed = 1.01L * unit_of_short(l.out) * std::fabs(wanted) +
                           real(l.k + 16) * std::ldexp(magnitude, -24) +
                           std::ldexp(1.0L, l.out == SG_DTYPE_BF16 ? -130 : -24);
      ASSERT_LE(std::fabs(o.y.at(e) - wanted), allowed)
          << what << ' ' << l.m << " x " << l.n << " x " << l.k << " of " << sg_dtype_name(l.in) << " to "
          << sg_dtype_name(l.out) << ", activation " << int(l.activation) << ", memory " << int(l.kind) << ", element "
          << e << ": " << double(o.y.at(e)) << " instead of " << double(wanted) << ", of a sum of " << double(sum);
    }
  }

  sg_gemm_desc describe(const cancelled_sums &l, const operands &o, std::int64_t item = 0) {
    sg_gemm_desc d = SG_GEMM_DESC_INIT;
    d.a = {o.x.item(item * l.m * l.k), l.m, l.k, 0, l.in, SG_LAYOUT_ROW_MAJOR};
    d.b = {o.w.item(item * l.k * l.n), l.k, l.n, 0, l.in, SG_LAYOUT_ROW_MAJOR};
    d.c = {o.y.item(item * l.m * l.n), l.m, l.n, 0, l.out, SG_LAYOUT_ROW_MAJOR};
    if (l.has_bias) d.bias = o.bias.item(item * l.n);
    d.beta.re = l.adds_c;
    d.activation = l.activation;
    return d;
  }

  random_source random_{23};
};

constexpr sg_dtype short_types[][2] = {{SG_DTYPE_BF16, SG_DTYPE_BF16},
                                       {SG_DTYPE_F16, SG_DTYPE_F16},
                                       {SG_DTYPE_F8_E4M3, SG_DTYPE_BF16},
                                       {SG_DTYPE_F8_E5M2, SG_DTYPE_F16}};
constexpr sg_activation activations[] = {SG_ACTIVATION_NONE, SG_ACTIVATION_RELU, SG_ACTIVATION_GELU};
constexpr sg_memory_kind kinds[] = {SG_MEMORY_DEVICE, SG_MEMORY_DEVICE, SG_MEMORY_PAGEABLE};

TEST_P(rounding, gemms_with_a_bias_that_cancels) {
  constexpr std::int64_t sizes[][3] = {{16, 24, 32}, {40, 48, 64}, {7, 9, 33}, {1, 8, 16}, {64, 64, 8}};
  for (const auto &[in, out] : short_types)
    for (const auto &[m, n, k] : sizes)
      for (const sg_activation activation : activations)
        for (const bool adds_c : {false, true})
          for (int turn = 0; turn < 5; ++turn) {
            const cancelled_sums l{in, out, m, n, k, 1, true, adds_c, activation, kinds[turn % 3]};
            operands o = draw(l);
            sg_gemm_desc d = describe(l, o);
            sg_plan_options options = SG_PLAN_OPTIONS_INIT;
            options.split = turn == 4 ? SG_SPLIT_K : SG_SPLIT_AUTO, options.parts = turn == 4 ? 2 : 0;
            sg_submit submit = SG_SUBMIT_INIT;
            submit.plan = &options;
            ASSERT_OK(sg_gemm(context_, &d, &submit));
            check(l, o, "gemm");
            if (HasFatalFailure()) return;
          }
}

// Large enough for every kernel of cuBLAS and cublasLt.
TEST_P(rounding, gemms_with_a_large_result_that_cancels) {
  for (const sg_dtype type : {SG_DTYPE_BF16, SG_DTYPE_F16})
    for (const bool has_bias : {false, true}) {
      const cancelled_sums l{
          type,     type,     256 + 8 * random_.below(9), 256 + 8 * random_.below(9), 64 + 8 * random_.below(5), 1,
          has_bias, !has_bias};
      operands o = draw(l);
      const sg_gemm_desc d = describe(l, o);
      ASSERT_OK(sg_gemm(context_, &d, nullptr));
      check(l, o, "gemm");
      if (HasFatalFailure()) return;
    }
}

// Many rows, whose number is no multiple of eight.
TEST_P(rounding, gemms_of_many_odd_rows_that_cancel) {
  for (const sg_dtype type : {SG_DTYPE_BF16, SG_DTYPE_F16})
    for (const sg_activation activation : {SG_ACTIVATION_NONE, SG_ACTIVATION_RELU}) {
      const cancelled_sums l{type, type, 801 + random_.below(7), 656, 64, 1, true, false, activation};
      operands o = draw(l);
      const sg_gemm_desc d = describe(l, o);
      ASSERT_OK(sg_gemm(context_, &d, nullptr));
      check(l, o, "gemm");
      if (HasFatalFailure()) return;
    }
}

TEST_P(rounding, batches_and_groups) {
  for (const auto &[in, out] : short_types)
    for (const sg_activation activation : activations)
      for (int turn = 0; turn < 9; ++turn) {
        const cancelled_sums l{in, out, 16, 24, 8, 4, true, turn % 2 == 1, activation, kinds[turn % 3]};
        operands o = draw(l);
        sg_gemm_desc d = describe(l, o);
        std::array<void *, 4> a{}, b{}, c{};
        std::vector<sg_gemm_desc> group;
        for (std::size_t i = 0; i < 4; ++i) {
          const sg_gemm_desc &one = group.emplace_back(describe(l, o, std::int64_t(i)));
          a[i] = one.a.data, b[i] = one.b.data, c[i] = one.c.data;
        }
        if (turn / 3 == 0) {
          d.batch = 4, d.stride_a = l.m * l.k, d.stride_b = l.k * l.n, d.stride_c = l.m * l.n, d.stride_bias = l.n;
          ASSERT_OK(sg_gemm(context_, &d, nullptr));
        } else if (turn / 3 == 1) {
          d.batch = 4, d.a.data = d.b.data = d.c.data = nullptr, d.stride_bias = l.n;
          d.a_array = a.data(), d.b_array = b.data(), d.c_array = c.data();
          ASSERT_OK(sg_gemm(context_, &d, nullptr));
        } else {
          job done;
          ASSERT_OK(sg_gemm_grouped_async(context_, group.data(), 4, nullptr, done.out()));
          ASSERT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
        }
        check(l, o, turn / 3 == 0 ? "batch" : turn / 3 == 1 ? "pointers" : "group");
        if (HasFatalFailure()) return;
      }
}

TEST_P(rounding, linear_layers) {
  for (const sg_dtype type : {SG_DTYPE_BF16, SG_DTYPE_F16})
    for (const sg_activation activation : activations)
      for (const std::int64_t n : {32, 9})
        for (int turn = 0; turn < 6; ++turn) {
          const cancelled_sums l{type, type, 24, n, 40, 1, true, false, activation, kinds[turn % 3]};
          operands o = draw(l);
          sg_linear_desc d = SG_LINEAR_DESC_INIT;
          const sg_gemm_desc of = describe(l, o);
          d.x = of.a, d.w = of.b, d.y = of.c, d.bias = of.bias, d.activation = activation;
          ASSERT_OK(sg_linear(context_, &d, nullptr));
          check(l, o, "linear");
          if (HasFatalFailure()) return;
        }
}

// A window has all pixels of its image, so that the images are the rows of X. Many images in a small workspace are a
// command of the device, where it has one.
TEST_P(rounding, convolutions) {
  for (const sg_dtype type : {SG_DTYPE_BF16, SG_DTYPE_F16})
    for (const sg_activation activation : activations)
      for (const std::int64_t kernel_h : {1, 4})
        for (const std::int64_t outputs : {48, 9})
          for (int turn = 0; turn < 8; ++turn) {
            const std::int64_t channels = outputs == 9 ? 7 : 8, kernel_w = kernel_h == 1 ? 1 : 2;
            const bool many = kernel_h == 4 && outputs == 9 && turn >= 4 && kinds[turn % 3] == SG_MEMORY_DEVICE;
            const cancelled_sums l{
                type,          type,  many ? 2000 : 24, outputs,        channels * kernel_h * kernel_w, 1,
                turn % 4 != 3, false, activation,       kinds[turn % 3]};
            operands o = draw(l);
            placed_elements filters(context_, l.kind, type, l.n * l.k, any_offset());
            for (std::int64_t j = 0; j < l.n; ++j)
              for (std::int64_t p = 0; p < l.k; ++p) filters.set(j * l.k + p, o.w.at(p * l.n + j));
            filters.write();
            sg_conv2d_desc d = SG_CONV2D_DESC_INIT;
            d.images = l.m, d.channels = channels, d.height = kernel_h, d.width = kernel_w, d.out_channels = outputs;
            d.windows.kernel_h = kernel_h, d.windows.kernel_w = kernel_w, d.dtype = type, d.activation = activation;
            d.image_layout = turn / 2 % 2 ? SG_IMAGE_NHWC : SG_IMAGE_NCHW;
            d.filter_layout = turn / 2 % 2 ? SG_FILTER_OHWI : SG_FILTER_OIHW;
            d.workspace = turn < 4 ? 0 : 8192;
            d.x.data = o.x.data(), d.w = filters.data(), d.y.data = o.y.data();
            d.bias = l.has_bias ? o.bias.data() : nullptr;
            sg_plan_options options = SG_PLAN_OPTIONS_INIT;
            options.memory_limit = turn < 6 ? 0 : 64 << 10;
            sg_submit submit = SG_SUBMIT_INIT;
            submit.plan = &options;
            ASSERT_OK(sg_conv2d(context_, &d, &submit));
            check(l, o, "conv2d");
            if (HasFatalFailure()) return;
          }
}

ON_EACH_DEVICE(rounding);

}  // namespace
}  // namespace sg_test
