// SPDX-License-Identifier: Apache-2.0
// The operations of layers.h for one instruction set; the rules of simd.cpp apply. Sums and maxima are kept in several
// parts, which the compiler holds in vectors.
#include "simd.hpp"
#include "simd_exponential.hpp"

namespace sg::cpu::SG_CPU_LEVEL {
namespace {

template <class Body>
void with_real(sg_dtype type, Body body) {
  return type == SG_DTYPE_F64 ? body(double{}) : body(float{});
}

template <class R>
constexpr std::int64_t part_count = 256 / sizeof(R);  // four of the widest vectors

// e^x for x <= 0: 0 where it is subnormal. Keeps a NaN.
float decay(float x) { return x < -87.0f ? 0.0f : exponential(x); }
double decay(double x) { return x < -708.0 ? 0.0 : exponential(x); }

template <class R>
R magnitude(R x) {
  return x < 0 ? -x : x;
}

// 1 / (1 + e^-x), and x times that of y; 0 for x at minus infinity. Neither overflows.
template <class R>
R sigmoid(R x) {
  const R e = decay(-magnitude(x));
  return (x < 0 ? e : R(1)) / (R(1) + e);
}
template <class R>
R times_sigmoid(R x, R y) {
  const R product = x * sigmoid(y);
  return x == -R(__builtin_huge_val()) ? R(0) : product;
}

// x / (1 + e^-2u), which is x/2 * (1 + tanh(u)).
template <class R>
R gelu_tanh(R x) {
  const R twice_u = x * (R(1.5957691216057308) + R(0.071354816272600249) * x * x);
  return times_sigmoid(x, twice_u);
}

// erfc, with a relative error of 1.2e-7 beside that of the exponential: "erfcc" of Numerical Recipes, a Chebyshev fit.
float complementary(float x) {
  constexpr float terms[] = {0.17087277f,  -0.82215223f, 1.48851587f, -1.13520398f, 0.27886807f,
                             -0.18628806f, 0.09678418f,  0.37409196f, 1.00002368f,  -1.26551223f};
  const float z = magnitude(x), t = 1 / (1 + 0.5f * z);
  float sum = 0;
  for (const float each : terms) sum = sum * t + each;
  const float value = t * decay(sum - z * z);
  return x < 0 ? 2 - value : value;
}
double complementary(double x) { return __builtin_erfc(x); }
template <class R>
R gelu_erf(R x) {
  const R value = R(0.5) * x * complementary(x * R(-0.70710678118654752));
  return x < -R(40) ? R(0) : value;
}

// Near 0 the polynomial of Cephes (tanhf.c), which keeps the relative precision.
float hyperbolic(float x) {
  const float e = decay(-2 * magnitude(x)), far = (1 - e) / (1 + e), z = x * x;
  const float sum =
      (((-5.70498872745e-3f * z + 2.06390887954e-2f) * z - 5.37397155531e-2f) * z + 1.33314422036e-1f) * z -
      3.33332819422e-1f;
  const float near = x + x * z * sum;
  return magnitude(x) < 0.625f ? near : x < 0 ? -far : far;
}
double hyperbolic(double x) { return __builtin_tanh(x); }

// y[i] = function(x[i], i). y may be x: no iteration reads what another writes.
template <class R, class Function>
void apply(R *y, const R *x, std::int64_t n, Function function) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = function(x[i], i);
}

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

// y[i] = function(a[i], b[i]), as in apply.
template <class R, class Function>
void apply_to_two(R *y, const R *a, const R *b, std::int64_t n, Function function) {
  apply(y, a, n, [=](R v, std::int64_t i) { return function(v, b[i]); });
}

// So far from 0 derivatives are their limits, and no term of them is infinite.
template <class R>
R limited(R x) {
  const R y = x < R(-1000) ? R(-1000) : x;
  return y > R(1000) ? R(1000) : y;
}

// The derivative of x times the sigmoid of t.
template <class R>
R derivative_of_product(R x, R t, R t_derivative) {
  const R e = decay(-magnitude(t)), sum = R(1) + e;
  return (t < 0 ? e : R(1)) / sum + x * t_derivative * e / (sum * sum);
}
template <class R>
R derivative_of_gelu(R x) {
  constexpr R first = R(1.5957691216057308), third = R(0.071354816272600249);
  return derivative_of_product(x, x * (first + third * x * x), first + 3 * third * x * x);
}
template <class R>
R derivative_of_gelu_erf(R x) {
  return R(0.5) * complementary(x * R(-0.70710678118654752)) + x * R(0.39894228040143268) * decay(R(-0.5) * x * x);
}
// Of the sigmoid of x: the sigmoid of -x times it.
template <class R>
R derivative_of_sigmoid(R x) {
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

// Combines f(x[0]), f(x[1]), ... by `plus`, from `start`.
template <class R, class Element, class Plus>
R reduced(const R *x, std::int64_t n, R start, Element element, Plus plus) {
  constexpr std::int64_t parts = part_count<R>;
  R sums[parts];
  for (R &sum : sums) sum = start;
  std::int64_t i = 0;
  for (; i + parts <= n; i += parts)
    for (std::int64_t l = 0; l < parts; ++l) sums[l] = plus(sums[l], element(x[i + l]));
  for (; i < n; ++i) sums[i % parts] = plus(sums[i % parts], element(x[i]));
  for (std::int64_t half = parts / 2; half > 0; half /= 2)
    for (std::int64_t l = 0; l < half; ++l) sums[l] = plus(sums[l], sums[l + half]);
  return sums[0];
}

// A maximum of minus infinity is replaced by 0: the row's exponentials, unless there is a NaN, are then all 0.
template <class R>
void softmax_row(R *y, const R *x, std::int64_t n) {
  const R lowest = -R(__builtin_huge_val());
  R most = reduced(
      x, n, lowest, [](R v) { return v; }, [](R a, R b) { return b > a ? b : a; });
  if (most == lowest) most = 0;
  apply(y, x, n, [most](R v, std::int64_t) { return decay(v - most); });
  const R sum = reduced(
      y, n, R(0), [](R v) { return v; }, [](R a, R b) { return a + b; });
  const R inverse = sum == 0 ? R(0) : R(1) / sum;
  apply(y, y, n, [inverse](R v, std::int64_t) { return v * inverse; });
}
void softmax(sg_dtype type, void *y, const void *x, std::int64_t n) {
  with_real(type, [=]<class R>(R) { softmax_row(static_cast<R *>(y), static_cast<const R *>(x), n); });
}

float root(float x) { return __builtin_sqrtf(x); }
double root(double x) { return __builtin_sqrt(x); }

template <class R>
void norm_row(sg_norm_kind kind, R *y, const R *x, const R *gamma, const R *beta, R epsilon, std::int64_t n) {
  const auto plus = [](R a, R b) { return a + b; };
  R mean = 0;
  if (kind == SG_NORM_LAYER)
    mean = reduced(
               x, n, R(0), [](R v) { return v; }, plus) /
           R(n);
  const R squares = reduced(
      x, n, R(0), [mean](R v) { return (v - mean) * (v - mean); }, plus);
  const R factor = R(1) / root(squares / R(n) + epsilon);
  if (gamma != nullptr && beta != nullptr)
    return apply(y, x, n, [=](R v, std::int64_t i) { return (v - mean) * factor * gamma[i] + beta[i]; });
  if (gamma != nullptr) return apply(y, x, n, [=](R v, std::int64_t i) { return (v - mean) * factor * gamma[i]; });
  if (beta != nullptr) return apply(y, x, n, [=](R v, std::int64_t i) { return (v - mean) * factor + beta[i]; });
  apply(y, x, n, [=](R v, std::int64_t) { return (v - mean) * factor; });
}
void norm(sg_dtype type, sg_norm_kind kind, void *y, const void *x, const void *gamma, const void *beta, double epsilon,
          std::int64_t n) {
  with_real(type, [=]<class R>(R) {
    norm_row(kind, static_cast<R *>(y), static_cast<const R *>(x), static_cast<const R *>(gamma),
             static_cast<const R *>(beta), R(epsilon), n);
  });
}

void f32_from_f64(float *dst, const double *src, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = static_cast<float>(src[i]);
}
// Truncated, with the last bit set if bits were lost.
void odd_f32_from_f64(float *dst, const double *src, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float near = static_cast<float>(src[i]);
    const double back = static_cast<double>(near);
    const std::uint32_t beyond = magnitude(back) > magnitude(src[i]) ? 1 : 0, inexact = back != src[i] ? 1 : 0;
    dst[i] = float_of((bits_of(near) - beyond) | inexact);
  }
}
void f64_from_f32(double *dst, const float *src, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = static_cast<double>(src[i]);
}

template <class R>
void rotate_pairs(sg_rotary_pairs pairs, R *y, const R *cos, const R *sin, std::int64_t half) {
  if (pairs == SG_ROTARY_HALVES) {
    R *const z = y + half;
#pragma GCC ivdep
    for (std::int64_t j = 0; j < half; ++j) {
      const R a = y[j], b = z[j];
      y[j] = a * cos[j] - b * sin[j];
      z[j] = a * sin[j] + b * cos[j];
    }
    return;
  }
#pragma GCC ivdep
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
const simd_layer_ops layer_ops = {unary,        binary, softmax,   norm, f32_from_f64, odd_f32_from_f64,
                                  f64_from_f32, rotate, dequantize};

}  // namespace sg::cpu::SG_CPU_LEVEL
