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

float complementary(float x) { return __builtin_erfcf(x); }
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

template <class R, class Function>
void apply(void *y, std::int64_t n, Function function) {
  auto *to = static_cast<R *>(y);
  for (std::int64_t i = 0; i < n; ++i) to[i] = function(to[i]);
}

void unary(sg_dtype type, sg_function function, void *y, std::int64_t n) {
  with_real(type, [=]<class R>(R) {
    switch (function) {
      case SG_FUNCTION_RELU: return apply<R>(y, n, [](R x) { return x < 0 ? R(0) : x; });
      case SG_FUNCTION_GELU: return apply<R>(y, n, [](R x) { return gelu_tanh(x); });
      case SG_FUNCTION_GELU_ERF: return apply<R>(y, n, [](R x) { return gelu_erf(x); });
      case SG_FUNCTION_SILU: return apply<R>(y, n, [](R x) { return times_sigmoid(x, x); });
      case SG_FUNCTION_SIGMOID: return apply<R>(y, n, [](R x) { return sigmoid(x); });
      case SG_FUNCTION_TANH: return apply<R>(y, n, [](R x) { return hyperbolic(x); });
      case SG_FUNCTION_ADD:
      case SG_FUNCTION_MULTIPLY: return;
    }
  });
}

void multiply(sg_dtype type, void *y, const void *x, std::int64_t n) {
  with_real(type, [=]<class R>(R) {
    auto *to = static_cast<R *>(y);
    const auto *from = static_cast<const R *>(x);
    for (std::int64_t i = 0; i < n; ++i) to[i] = to[i] * from[i];
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
void softmax_row(R *row, std::int64_t n) {
  const R lowest = -R(__builtin_huge_val());
  R most = reduced(
      row, n, lowest, [](R x) { return x; }, [](R a, R b) { return b > a ? b : a; });
  if (most == lowest) most = 0;
  for (std::int64_t i = 0; i < n; ++i) row[i] = decay(row[i] - most);
  const R sum = reduced(
      row, n, R(0), [](R x) { return x; }, [](R a, R b) { return a + b; });
  const R inverse = sum == 0 ? R(0) : R(1) / sum;
  for (std::int64_t i = 0; i < n; ++i) row[i] = row[i] * inverse;
}
void softmax(sg_dtype type, void *row, std::int64_t n) {
  with_real(type, [=]<class R>(R) { softmax_row(static_cast<R *>(row), n); });
}

float root(float x) { return __builtin_sqrtf(x); }
double root(double x) { return __builtin_sqrt(x); }

template <class R>
void norm_row(sg_norm_kind kind, R *row, const R *gamma, const R *beta, R epsilon, std::int64_t n) {
  const auto plus = [](R a, R b) { return a + b; };
  R mean = 0;
  if (kind == SG_NORM_LAYER)
    mean = reduced(
               row, n, R(0), [](R x) { return x; }, plus) /
           R(n);
  const R squares = reduced(
      row, n, R(0), [mean](R x) { return (x - mean) * (x - mean); }, plus);
  const R factor = R(1) / root(squares / R(n) + epsilon);
  if (gamma == nullptr)
    for (std::int64_t i = 0; i < n; ++i) row[i] = (row[i] - mean) * factor;
  else
    for (std::int64_t i = 0; i < n; ++i) row[i] = (row[i] - mean) * factor * gamma[i];
  if (beta != nullptr)
    for (std::int64_t i = 0; i < n; ++i) row[i] = row[i] + beta[i];
}
void norm(sg_dtype type, sg_norm_kind kind, void *row, const void *gamma, const void *beta, double epsilon,
          std::int64_t n) {
  with_real(type, [=]<class R>(R) {
    norm_row(kind, static_cast<R *>(row), static_cast<const R *>(gamma), static_cast<const R *>(beta), R(epsilon), n);
  });
}

}  // namespace

extern const simd_layer_ops layer_ops;
const simd_layer_ops layer_ops = {unary, multiply, softmax, norm};

}  // namespace sg::cpu::SG_CPU_LEVEL
