// SPDX-License-Identifier: Apache-2.0
// The operations of layers.h against references of higher precision; gaps keep their bytes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>

#include "base/dtype.hpp"
#include "gemm_case.hpp"
#include "ops/elementwise.hpp"
#include "ops/norm.hpp"
#include "ops/softmax.hpp"
#include "support/sanitizers.hpp"

namespace sg::test {
namespace {

constexpr sg_dtype layer_types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};
constexpr sg_function functions[] = {SG_FUNCTION_RELU,
                                     SG_FUNCTION_GELU,
                                     SG_FUNCTION_GELU_ERF,
                                     SG_FUNCTION_SILU,
                                     SG_FUNCTION_SIGMOID,
                                     SG_FUNCTION_TANH,
                                     SG_FUNCTION_ADD,
                                     SG_FUNCTION_MULTIPLY,
                                     SG_FUNCTION_RELU_GRADIENT,
                                     SG_FUNCTION_GELU_GRADIENT,
                                     SG_FUNCTION_GELU_ERF_GRADIENT,
                                     SG_FUNCTION_SILU_GRADIENT,
                                     SG_FUNCTION_SIGMOID_GRADIENT,
                                     SG_FUNCTION_TANH_GRADIENT};
constexpr real infinite = std::numeric_limits<real>::infinity();
const real nan_value = std::numeric_limits<real>::quiet_NaN();

struct form {
  std::int64_t rows, cols, gap;
  bool by_rows, in_place;
};

// A matrix of the caller's, on the host: row i, column j.
struct matrix {
  host_operand stored;
  bool by_rows;

  matrix(sg_dtype type, const form &f, std::int64_t gap)
      : stored(type, f.by_rows ? f.cols : f.rows, f.by_rows ? f.rows : f.cols, gap, 1), by_rows(f.by_rows) {}
  real get(std::int64_t i, std::int64_t j) { return by_rows ? stored.get(0, j, i).real() : stored.get(0, i, j).real(); }
  void set(std::int64_t i, std::int64_t j, real value) {
    by_rows ? stored.set(0, j, i, value) : stored.set(0, i, j, value);
  }
  std::int64_t row_stride() const { return by_rows ? stored.ld : 1; }
  std::int64_t col_stride() const { return by_rows ? 1 : stored.ld; }
};

// A stack of matrices of `rows` rows, whose first row has the number `first`. `wide`: X is f32, whatever Y is.
// `sums`: rows are not divided by the sums of their exponentials.
struct stack {
  std::int64_t first = 0, rows = 0;
  bool wide = false, sums = false;
};

struct expected {
  real value, error;  // of the arithmetic, before the result is rounded
};

class layers : public conformance {
 protected:
  // Runs `command(x, y)` on copies of X and Y in the device's memory.
  template <class Fill>
  void run(const form &f, matrix &x, matrix &y, Fill &&fill) {
    memory at_x(dev(), std::int64_t(x.stored.bytes.size())), at_y(dev(), std::int64_t(y.stored.bytes.size()));
    at_x.write(stream_, x.stored.bytes.data());
    at_y.write(stream_, y.stored.bytes.data());
    fill(at_x.data(), f.in_place ? at_x.data() : at_y.data());
    f.in_place ? at_x.read(stream_, y.stored.bytes.data()) : at_y.read(stream_, y.stored.bytes.data());
  }
  template <class Command>
  void enqueue_one(const Command &c) {
    ASSERT_TRUE(dev()->supports(c.header));
    complete(*dev(), stream_, c);
  }
  template <class Reference>
  void check(const form &f, sg_dtype type, matrix &before, matrix &y, Reference &&reference) {
    const precision p = precision_of(type, false);
    for (std::int64_t i = 0; i < f.rows; ++i)
      for (std::int64_t j = 0; j < f.cols; ++j) {
        expected e = reference(i, j);
        if (type == SG_DTYPE_F16 && std::abs(e.value) >= 65520) e.value = std::copysign(infinite, e.value);
        const real found = y.get(i, j);
        const real bound = p.out * std::abs(e.value) + (1 + p.out) * e.error + 3 * p.tiny;
        const bool is_right = std::isnan(e.value)   ? std::isnan(found)
                              : std::isinf(e.value) ? found == e.value
                                                    : std::abs(found - e.value) <= bound;
        ASSERT_TRUE(is_right) << double(found) << " instead of " << double(e.value) << " within " << double(bound)
                              << ": " << sg::name_of(type) << " " << f.rows << "x" << f.cols << " gap " << f.gap
                              << (f.by_rows ? " by rows" : " by columns") << " at " << i << ", " << j;
      }
    const std::int64_t size = size_of(type);
    for (std::int64_t c = 0; c < y.stored.cols; ++c)
      ASSERT_EQ(0, std::memcmp(before.stored.at(0, y.stored.rows, c), y.stored.at(0, y.stored.rows, c),
                               std::size_t((y.stored.ld - y.stored.rows) * size)))
          << "a gap was written";
  }
  // The matrices of one case: X random or with the given values, Y poisoned.
  template <class Values>
  void fill_values(matrix &x, const form &f, Values &&values) {
    for (std::int64_t i = 0; i < f.rows; ++i)
      for (std::int64_t j = 0; j < f.cols; ++j) x.set(i, j, values(i, j));
  }

  real unit(sg_dtype type) const { return precision_of(type, false).sum; }
  // Where exponentials may be 0.
  static real flushed(sg_dtype type) { return std::ldexp(real{1}, type == SG_DTYPE_F64 ? -1015 : -120); }

  void try_elementwise(sg_dtype type, sg_function function, const form &f, std::optional<real> fixed = {});
  void try_softmax(sg_dtype type, const form &f, std::optional<std::int64_t> offset, real scale, bool special = false,
                   const stack &of = {});
  void try_norm(sg_dtype type, const form &f, sg_norm_kind kind, bool has_gamma, bool has_beta);

  stream stream_{dev()};
  std::mt19937_64 random_{42};
  real uniform(real scale) { return std::uniform_real_distribution<double>(-1, 1)(random_) * scale; }
};

// The derivative at b of a function, by its gradient, and the error of the arithmetic.
expected derivative_of(sg_function gradient, real b, real u) {
  const auto [first, second] = sg_reference::slope_terms(gradient, b);
  const real size = std::abs(first) + std::abs(second);
  const auto error = [u, size](real constant, real growth, real argument) {
    return (constant + growth * std::min<real>(argument, 2000)) * u * size;
  };
  if (std::isinf(b)) return {first, 0};
  switch (gradient) {
    case SG_FUNCTION_RELU_GRADIENT: return {first, 0};
    case SG_FUNCTION_GELU_GRADIENT: return {first + second, error(24, 8, std::abs(sg_reference::gelu_argument(b)))};
    case SG_FUNCTION_GELU_ERF_GRADIENT: return {first + second, error(24, 4, b * b)};
    case SG_FUNCTION_SILU_GRADIENT: return {first + second, error(24, 8, std::abs(b))};
    case SG_FUNCTION_SIGMOID_GRADIENT: return {first, error(16, 0, 0)};
    default: return {first, error(16, 4, std::abs(b))};
  }
}

expected of_function(sg_function function, real a, real b, real u) {
  if (function >= SG_FUNCTION_RELU_GRADIENT) {
    const expected d = derivative_of(function, b, u);
    return {a * d.value, std::abs(a) * d.error + u * std::abs(a * d.value)};
  }
  const real value = sg_reference::value_of(function, a, b), unit = u * std::abs(value);
  if (value == 0) return {value, 0};
  switch (function) {
    case SG_FUNCTION_RELU: return {value, 0};
    case SG_FUNCTION_GELU:
      return {value, (12 + 8 * std::min<real>(std::abs(sg_reference::gelu_argument(a)), 2000)) * unit};
    case SG_FUNCTION_GELU_ERF: return {value, a > 10 ? 4 * unit : (16 + 4 * a * a) * unit};
    case SG_FUNCTION_SILU: return {value, 12 * unit};
    case SG_FUNCTION_SIGMOID:
    case SG_FUNCTION_TANH: return {value, 10 * unit};
    default: return {value, unit};
  }
}

void layers::try_elementwise(sg_dtype type, sg_function function, const form &f, std::optional<real> fixed) {
  matrix a(type, f, f.gap), b(type, f, 2 * f.gap), c(type, f, f.in_place ? f.gap : f.gap + 1);
  const auto value = [&](std::int64_t, std::int64_t) { return fixed ? *fixed : uniform(12); };
  fill_values(a, f, value);
  fill_values(b, f, value);
  memory at_b(dev(), std::int64_t(b.stored.bytes.size()));
  at_b.write(stream_, b.stored.bytes.data());
  matrix before = f.in_place ? a : c;
  run(f, a, c, [&](void *at_a, void *at_c) {
    auto what = backend_command<sg_backend_elementwise>();
    what.m = a.stored.rows, what.n = a.stored.cols, what.type = type, what.function = function;
    what.a = at_a, what.lda = a.stored.ld;
    if (ops::takes_two(function)) what.b = at_b.data(), what.ldb = b.stored.ld;
    what.c = at_c, what.ldc = c.stored.ld;
    enqueue_one(what);
  });
  check(f, type, before, c, [&](std::int64_t i, std::int64_t j) {
    const real x = a.get(i, j);
    const real second = b.get(i, j);
    expected e = of_function(function, x, second, unit(type));
    if (std::isfinite(x)) e.error += (1 + std::abs(x)) * flushed(type);
    if (ops::takes_two(function) && std::isfinite(x) && std::isfinite(second))
      e.error += std::abs(x) * (1 + std::abs(second)) * flushed(type);
    return e;
  });
}

void layers::try_softmax(sg_dtype type, const form &f, std::optional<std::int64_t> offset, real scale, bool special,
                         const stack &of) {
  matrix x(of.wide ? SG_DTYPE_F32 : type, f, f.gap), y(type, f, f.in_place ? f.gap : f.gap + 1);
  fill_values(x, f, [&](std::int64_t i, std::int64_t j) {
    const real value = uniform(scale);
    if (!special) return value;
    if (i % 5 == 1) return j == f.cols / 2 ? nan_value : value;
    if (i % 5 == 2) return j == f.cols - 1 ? infinite : value;
    if (i % 5 == 3) return -infinite;
    return j % 3 == 0 ? -infinite : value;
  });
  matrix before = f.in_place ? x : y;
  std::vector<float> sums(std::size_t(f.rows), -1);
  memory at_sums(dev(), std::int64_t(sums.size() * sizeof(float)));
  run(f, x, y, [&](void *at_x, void *at_y) {
    auto what = backend_command<sg_backend_softmax>();
    what.rows = f.rows, what.cols = f.cols, what.type = type;
    what.mask = offset ? SG_MASK_CAUSAL : SG_MASK_NONE, what.mask_offset = offset.value_or(0);
    what.x = at_x, what.x_row = x.row_stride(), what.x_col = x.col_stride();
    what.y = at_y, what.y_row = y.row_stride(), what.y_col = y.col_stride();
    what.mask_row = of.first, what.mask_rows = of.rows;
    if (of.wide) what.x_type = SG_DTYPE_F32;
    if (of.sums) what.sums = reinterpret_cast<float *>(at_sums.data());
    enqueue_one(what);
  });
  at_sums.read(stream_, sums.data());
  for (std::int64_t i = 0; of.sums && i < f.rows; ++i) {
    real sum = 0;
    for (std::int64_t j = 0; j < f.cols; ++j) sum += y.get(i, j);
    ASSERT_NEAR(1, sum == 0 ? 1 + sums[std::size_t(i)] : real(sums[std::size_t(i)]) / sum, 1e-5)
        << "the sum of row " << i;
  }
  std::vector<expected> row(std::size_t(f.cols));
  std::int64_t known = -1;
  check(f, type, before, y, [&](std::int64_t i, std::int64_t j) {
    if (known == i) return row[std::size_t(j)];
    known = i;
    const std::int64_t number = of.rows > 0 ? (i + of.first) % of.rows : i + of.first;
    const std::int64_t visible = offset ? std::clamp<std::int64_t>(number + *offset + 1, 0, f.cols) : f.cols;
    real most = -infinite, sum = 0;
    for (std::int64_t k = 0; k < visible; ++k) most = std::isnan(x.get(i, k)) ? most : std::max(most, x.get(i, k));
    if (most == -infinite) most = 0;
    for (std::int64_t k = 0; k < visible; ++k) sum += std::exp(x.get(i, k) - most);
    if (of.sums) sum = 1;
    for (std::int64_t k = 0; k < f.cols; ++k) {
      const real value = k >= visible || sum == 0 ? 0 : std::exp(x.get(i, k) - most) / sum;
      const real distance = value == 0 || !std::isfinite(value) ? 0 : most - x.get(i, k);
      row[std::size_t(k)] = {value,
                             value == 0 ? 0 : (16 + real(f.cols) + 2 * distance) * unit(type) * value + flushed(type)};
    }
    return row[std::size_t(j)];
  });
}

void layers::try_norm(sg_dtype type, const form &f, sg_norm_kind kind, bool has_gamma, bool has_beta) {
  matrix x(type, f, f.gap), y(type, f, f.in_place ? f.gap : f.gap + 1);
  fill_values(x, f, [&](std::int64_t, std::int64_t) { return uniform(3) + 0.5L; });
  host_operand gamma(type, f.cols, 1, 0, 1), beta(type, f.cols, 1, 0, 1);
  gamma.randomise(random_);
  beta.randomise(random_);
  memory at_gamma(dev(), std::int64_t(gamma.bytes.size())), at_beta(dev(), std::int64_t(beta.bytes.size()));
  at_gamma.write(stream_, gamma.bytes.data());
  at_beta.write(stream_, beta.bytes.data());
  matrix before = f.in_place ? x : y;
  constexpr double epsilon = 1e-3;
  run(f, x, y, [&](void *at_x, void *at_y) {
    auto what = backend_command<sg_backend_norm>();
    what.rows = f.rows, what.cols = f.cols, what.type = type, what.kind = kind, what.epsilon = epsilon;
    what.x = at_x, what.x_row = x.row_stride(), what.x_col = x.col_stride();
    what.y = at_y, what.y_row = y.row_stride(), what.y_col = y.col_stride();
    if (has_gamma) what.gamma = at_gamma.data();
    if (has_beta) what.beta = at_beta.data();
    enqueue_one(what);
  });
  const real u = unit(type), n = real(f.cols);
  real mean = 0, size = 0, variance = 0;
  std::int64_t known = -1;
  check(f, type, before, y, [&](std::int64_t i, std::int64_t j) {
    if (known != i) {
      known = i;
      mean = size = variance = 0;
      for (std::int64_t k = 0; k < f.cols; ++k) mean += x.get(i, k) / n, size += std::abs(x.get(i, k)) / n;
      if (kind == SG_NORM_RMS) mean = size = 0;
      for (std::int64_t k = 0; k < f.cols; ++k) variance += (x.get(i, k) - mean) * (x.get(i, k) - mean) / n;
    }
    const real g = has_gamma ? gamma.get(0, j, 0).real() : 1, b = has_beta ? beta.get(0, j, 0).real() : 0;
    const real factor = 1 / std::sqrt(variance + epsilon), d = x.get(i, j) - mean, product = d * factor * g;
    const real mean_error = (n + 4) * u * size;
    const real relative = (n + 16) * u + mean_error * mean_error / (variance + epsilon);
    return expected{product + b, factor * std::abs(g) * (mean_error + u * std::abs(d)) + std::abs(product) * relative +
                                     2 * u * std::abs(b)};
  });
}

// Beside the edges: sizes of one warp's and one block's registers, and beyond.
constexpr std::int64_t row_sizes[][2] = {{1, 1},  {1, 300},  {7, 5},    {70, 1},   {5, 33},   {40, 40},
                                         {9, 64}, {3, 1024}, {3, 1030}, {2, 8192}, {1, 8200}, {2, 8209}};

template <class Body>
void each_form(Body &&body) {
  for (const auto &size : row_sizes)
    for (const bool by_rows : {true, false})
      for (const std::int64_t gap : {0, 3, 8})
        for (const bool in_place : {false, true}) body(form{size[0], size[1], gap, by_rows, in_place});
}

TEST_P(layers, every_function_and_type) {
  sweep all(1, !sg_test::sanitized, 11);
  for (const sg_dtype type : layer_types)
    for (const sg_function function : functions)
      for (const std::int64_t gap : {0, 3, 8})
        for (const bool in_place : {false, true}) {
          if (!all.tries_next()) continue;
          try_elementwise(type, function, {7, 5, gap, true, in_place});
          try_elementwise(type, function, {1300, 3, gap, false, in_place});
          try_elementwise(type, function, {1, 1, gap, false, in_place});
          try_elementwise(type, function, {64, 64, gap, true, in_place});
        }
}

TEST_P(layers, functions_of_special_values) {
  for (const sg_dtype type : layer_types)
    for (const sg_function function : functions)
      for (const real value : {real{0}, -real{0}, infinite, -infinite, nan_value, real{60000}, real{-60000}, real{-20},
                               real{1} / 4096, real{-100}, real{100}, real{-89}})
        try_elementwise(type, function, {2, 20, 0, true, false}, value);
}

TEST_P(layers, softmax_of_every_form) {
  sweep all;
  for (const sg_dtype type : layer_types)
    each_form([&](const form &f) {
      if (all.tries_next()) try_softmax(type, f, {}, 4);
    });
}

TEST_P(layers, softmax_of_a_wide_range) {
  for (const sg_dtype type : layer_types)
    for (const bool by_rows : {true, false}) {
      try_softmax(type, {6, 200, 0, by_rows, false}, {}, 60000);
      try_softmax(type, {6, 200, 3, by_rows, false}, {}, 100);
    }
}

TEST_P(layers, causal_softmax) {
  for (const sg_dtype type : layer_types)
    for (const bool by_rows : {true, false})
      for (const std::int64_t offset : {-100, -3, 0, 5, 100, 100000})
        for (const std::int64_t cols : {1, 40, 96, 1100, 8300})
          try_softmax(type, {cols > 1000 ? 3 : 50, cols, 0, by_rows, offset == 0}, offset, 4);
}

TEST_P(layers, causal_softmax_of_stacks) {
  for (const sg_dtype type : layer_types)
    for (const bool by_rows : {true, false})
      for (const std::int64_t cols : {6, 70, 1100})
        for (const stack &of : {stack{0, 4}, stack{3, 4}, stack{2, 0}, stack{5, 100}})
          try_softmax(type, {13, cols, 0, by_rows, cols == 70}, cols / 2 - 1, 4, false, of);
}

TEST_P(layers, softmax_of_wider_operands) {
  for (const sg_dtype type : {SG_DTYPE_F16, SG_DTYPE_BF16})
    for (const auto &size : row_sizes)
      for (const std::int64_t gap : {0, 3, 8}) {
        try_softmax(type, {size[0], size[1], gap, true, false}, {}, 4, false, {0, 0, true});
        try_softmax(type, {size[0], size[1], gap, true, false}, size[1] / 2, 4, true, {1, 2, true});
        try_softmax(type, {size[0], size[1], gap, true, false}, size[1] / 2, 4, false, {1, 2, true, true});
      }
}

TEST_P(layers, softmax_of_special_values) {
  for (const sg_dtype type : layer_types)
    for (const bool by_rows : {true, false})
      for (const std::int64_t cols : {1, 7, 64, 1024, 2048, 8400})
        for (const std::optional<std::int64_t> offset : {std::optional<std::int64_t>{}, std::optional<std::int64_t>{3}})
          try_softmax(type, {10, cols, 0, by_rows, false}, offset, 4, true);
}

TEST_P(layers, norms_of_every_form) {
  sweep all;
  for (const sg_dtype type : layer_types)
    each_form([&](const form &f) {
      if (!all.tries_next()) return;
      try_norm(type, f, SG_NORM_RMS, f.gap != 3, false);
      try_norm(type, f, SG_NORM_LAYER, f.gap == 8, f.gap == 3);
      try_norm(type, f, SG_NORM_LAYER, true, true);
    });
}

TEST_P(layers, types_that_no_device_has) {
  for (const sg_dtype type : {SG_DTYPE_I8, SG_DTYPE_I32, SG_DTYPE_C64, SG_DTYPE_C128, SG_DTYPE_F8_E4M3}) {
    auto function = backend_command<sg_backend_elementwise>();
    auto softmax = backend_command<sg_backend_softmax>();
    auto norm = backend_command<sg_backend_norm>();
    function.type = softmax.type = norm.type = type;
    EXPECT_FALSE(dev()->supports(function.header)) << sg::name_of(type);
    EXPECT_FALSE(dev()->supports(softmax.header)) << sg::name_of(type);
    EXPECT_FALSE(dev()->supports(norm.header)) << sg::name_of(type);
  }
  auto wide = backend_command<sg_backend_softmax>();
  wide.type = SG_DTYPE_F16, wide.x_type = SG_DTYPE_F64;
  EXPECT_FALSE(dev()->supports(wide.header));
  wide.type = SG_DTYPE_F64, wide.x_type = SG_DTYPE_F32;
  EXPECT_FALSE(dev()->supports(wide.header));
}

SG_CONFORMANCE(layers);

}  // namespace
}  // namespace sg::test
