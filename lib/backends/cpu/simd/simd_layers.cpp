// SPDX-License-Identifier: Apache-2.0
// The operations of layers.h and convert.h on elements, for one instruction set; the rules of simd.cpp apply.
#include "simd.hpp"
#include "simd_apply.hpp"
#include "simd_rows.hpp"

namespace sg::cpu::SG_CPU_LEVEL {
namespace {

template <class R>
SG_IN_LOOP R magnitude(R x) {
  return x < 0 ? -x : x;
}

// 1 / (1 + e^-x), and x times that of y; 0 for x at minus infinity. Neither overflows.
template <class R>
SG_IN_LOOP R sigmoid(R x) {
  const R e = decay(-magnitude(x));
  return (x < 0 ? e : R(1)) / (R(1) + e);
}
template <class R>
SG_IN_LOOP R times_sigmoid(R x, R y) {
  const R product = x * sigmoid(y);
  return x == -R(__builtin_huge_val()) ? R(0) : product;
}

// x / (1 + e^-2u), which is x/2 * (1 + tanh(u)).
template <class R>
SG_IN_LOOP R gelu_tanh(R x) {
  const R twice_u = x * (R(1.5957691216057308) + R(0.071354816272600249) * x * x);
  return times_sigmoid(x, twice_u);
}

// erfc, with a relative error of 1.2e-7 beside that of the exponential: "erfcc" of Numerical Recipes, a Chebyshev fit.
SG_IN_LOOP float complementary(float x) {
  const float z = magnitude(x), t = 1 / (1 + 0.5f * z);
  const float sum = polynomial(t, 0.17087277f, -0.82215223f, 1.48851587f, -1.13520398f, 0.27886807f, -0.18628806f,
                               0.09678418f, 0.37409196f, 1.00002368f, -1.26551223f);
  const float value = t * decay(sum - z * z);
  return x < 0 ? 2 - value : value;
}
SG_IN_LOOP double complementary(double x) { return __builtin_erfc(x); }
template <class R>
SG_IN_LOOP R gelu_erf(R x) {
  const R value = R(0.5) * x * complementary(x * R(-0.70710678118654752));
  return x < -R(40) ? R(0) : value;
}

// Near 0 the polynomial of Cephes (tanhf.c), which keeps the relative precision.
SG_IN_LOOP float hyperbolic(float x) {
  const float e = decay(-2 * magnitude(x)), far = (1 - e) / (1 + e), z = x * x;
  const float sum =
      (((-5.70498872745e-3f * z + 2.06390887954e-2f) * z - 5.37397155531e-2f) * z + 1.33314422036e-1f) * z -
      3.33332819422e-1f;
  const float near = x + x * z * sum;
  return magnitude(x) < 0.625f ? near : x < 0 ? -far : far;
}
SG_IN_LOOP double hyperbolic(double x) { return __builtin_tanh(x); }

void unary(sg_dtype type, sg_function function, void *y, const void *x, std::int64_t n) {
  with_real(type, [=]<class R>(R) {
    auto *const to = static_cast<R *>(y);
    const auto *const from = static_cast<const R *>(x);
    switch (function) {
      case SG_FUNCTION_RELU: return apply(to, from, n, [](R v, std::int64_t) { return v < 0 ? R(0) : v; });
      case SG_FUNCTION_GELU: return apply(to, from, n, [](R v, std::int64_t) { return gelu_tanh(v); });
      case SG_FUNCTION_GELU_ERF: return apply(to, from, n, [](R v, std::int64_t) { return gelu_erf(v); });
      case SG_FUNCTION_SILU: return apply(to, from, n, [](R v, std::int64_t) { return times_sigmoid(v, v); });
      case SG_FUNCTION_SIGMOID: return apply(to, from, n, [](R v, std::int64_t) { return sigmoid(v); });
      case SG_FUNCTION_TANH: return apply(to, from, n, [](R v, std::int64_t) { return hyperbolic(v); });
      default: return;
    }
  });
}

// So far from 0 derivatives are their limits, and no term of them is infinite.
template <class R>
SG_IN_LOOP R limited(R x) {
  const R y = x < R(-1000) ? R(-1000) : x;
  return y > R(1000) ? R(1000) : y;
}

// The derivative of x times the sigmoid of t.
template <class R>
SG_IN_LOOP R derivative_of_product(R x, R t, R t_derivative) {
  const R e = decay(-magnitude(t)), sum = R(1) + e;
  return (t < 0 ? e : R(1)) / sum + x * t_derivative * e / (sum * sum);
}
template <class R>
SG_IN_LOOP R derivative_of_gelu(R x) {
  constexpr R first = R(1.5957691216057308), third = R(0.071354816272600249);
  return derivative_of_product(x, x * (first + third * x * x), first + 3 * third * x * x);
}
template <class R>
SG_IN_LOOP R derivative_of_gelu_erf(R x) {
  return R(0.5) * complementary(x * R(-0.70710678118654752)) + x * R(0.39894228040143268) * decay(R(-0.5) * x * x);
}
// Of the sigmoid of x: the sigmoid of -x times it.
template <class R>
SG_IN_LOOP R derivative_of_sigmoid(R x) {
  const R e = decay(-magnitude(x)), sum = R(1) + e;
  return e / (sum * sum);
}

void binary(sg_dtype type, sg_function function, void *y, const void *a, const void *b, std::int64_t n) {
  with_real(type, [=]<class R>(R) {
    auto *const to = static_cast<R *>(y);
    const auto *const first = static_cast<const R *>(a), *const second = static_cast<const R *>(b);
    const auto with = [=](auto each) { apply_to_two(to, first, second, n, each); };
    switch (function) {
      case SG_FUNCTION_ADD: return with([](R v, R w) { return v + w; });
      case SG_FUNCTION_MULTIPLY: return with([](R v, R w) { return v * w; });
      case SG_FUNCTION_RELU_GRADIENT: return with([](R v, R w) { return v * (w > 0 ? R(1) : w <= 0 ? R(0) : w); });
      case SG_FUNCTION_GELU_GRADIENT: return with([](R v, R w) { return v * derivative_of_gelu(limited(w)); });
      case SG_FUNCTION_GELU_ERF_GRADIENT: return with([](R v, R w) { return v * derivative_of_gelu_erf(limited(w)); });
      case SG_FUNCTION_SILU_GRADIENT:
        return with([](R v, R w) { return v * derivative_of_product(limited(w), limited(w), R(1)); });
      case SG_FUNCTION_SIGMOID_GRADIENT: return with([](R v, R w) { return v * derivative_of_sigmoid(w); });
      case SG_FUNCTION_TANH_GRADIENT: return with([](R v, R w) { return v * (4 * derivative_of_sigmoid(2 * w)); });
      default: return;
    }
  });
}

void f32_from_f64(float *dst, const double *src, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = static_cast<float>(src[i]);
}
void odd_f32_from_f64(float *dst, const double *src, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = odd_f32_of_f64(src[i]);
}
void f64_from_f32(double *dst, const float *src, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = static_cast<double>(src[i]);
}

template <class R>
void rotate_pairs(sg_rotary_pairs pairs, R *y, const R *cos, const R *sin, std::int64_t half) {
  if (pairs == SG_ROTARY_HALVES) {
    R *const z = y + half;
    SG_INDEPENDENT
    for (std::int64_t j = 0; j < half; ++j) {
      const R a = y[j], b = z[j];
      y[j] = a * cos[j] - b * sin[j];
      z[j] = a * sin[j] + b * cos[j];
    }
    return;
  }
  SG_INDEPENDENT
  for (std::int64_t j = 0; j < half; ++j) {
    const R a = y[2 * j], b = y[2 * j + 1];
    y[2 * j] = a * cos[j] - b * sin[j];
    y[2 * j + 1] = a * sin[j] + b * cos[j];
  }
}
void rotate(sg_dtype type, sg_rotary_pairs pairs, void *y, const void *cos, const void *sin, std::int64_t half) {
  with_real(type, [=]<class R>(R) {
    rotate_pairs(pairs, static_cast<R *>(y), static_cast<const R *>(cos), static_cast<const R *>(sin), half);
  });
}

void dequantize_block(sg_quantization quantization, float *y, const std::int8_t *x, float scale, float zero,
                      std::int64_t n) {
  if (quantization == SG_QUANTIZATION_I8) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = (static_cast<float>(x[i]) - zero) * scale;
    return;
  }
  for (std::int64_t i = 0; i < n / 2; ++i) {
    const int pair = x[i], high = pair >> 4, low = static_cast<std::int8_t>(pair << 4) >> 4;
    y[2 * i] = (static_cast<float>(low) - zero) * scale;
    y[2 * i + 1] = (static_cast<float>(high) - zero) * scale;
  }
}
void dequantize(sg_quantization quantization, float *y, const void *x, const float *scales, const float *zeros,
                std::int64_t block_size, std::int64_t first, std::int64_t last) {
  const auto *const bytes = static_cast<const std::int8_t *>(x);
  for (std::int64_t at = first; at < last;) {
    const std::int64_t block = at / block_size, block_end = (block + 1) * block_size;
    const std::int64_t end = block_end < last ? block_end : last;
    dequantize_block(quantization, y + (at - first), bytes + (quantization == SG_QUANTIZATION_I4 ? at / 2 : at),
                     scales[block], zeros == nullptr ? 0.0f : zeros[block], end - at);
    at = end;
  }
}

}  // namespace

extern const simd_layer_ops layer_ops;
const simd_layer_ops layer_ops = {
    unary, binary, softmax,      softmax_gradient, norm,         norm_gradient, dot,
    sum,   divide, f32_from_f64, odd_f32_from_f64, f64_from_f32, rotate,        dequantize};

}  // namespace sg::cpu::SG_CPU_LEVEL
