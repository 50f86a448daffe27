// SPDX-License-Identifier: Apache-2.0
// The operations of layers.h on rows, for one instruction set; the rules of simd.cpp apply. Sums and maxima are kept in
// several parts, which the compiler holds in vectors.
#include "simd_rows.hpp"

#include "simd_apply.hpp"

namespace sg::cpu::SG_CPU_LEVEL {
namespace {

template <class R>
constexpr std::int64_t part_count = 256 / sizeof(R);  // four of the widest vectors

template <class R>
constexpr std::int64_t few_parts = 32 / sizeof(R);  // of short arrays, and of the rest of longer ones

// Elements that are summed in parts side by side; the sums of longer arrays are added pairwise.
template <class R>
constexpr std::int64_t summed_at_once = 16 * part_count<R>;

// Where an array of more elements is halved.
template <class R>
std::int64_t half_of(std::int64_t n) {
  return (n / 2 + summed_at_once<R> - 1) / summed_at_once<R> * summed_at_once<R>;
}

// Adds the upper half of the parts to the lower one until one is left.
template <std::int64_t parts, class R, class Plus>
R fold(R (&sums)[parts], Plus plus) {
  for (std::int64_t half = parts / 2; half > 0; half /= 2)
    for (std::int64_t l = 0; l < half; ++l) sums[l] = plus(sums[l], sums[l + half]);
  return sums[0];
}

// Combines at(first), at(first + 1), ... by `plus`, from `start`, in that many parts side by side.
template <std::int64_t parts, class R, class At, class Plus>
R reduced_in_parts(std::int64_t first, std::int64_t n, R start, At at, Plus plus) {
  R sums[parts];
  for (R &sum : sums) sum = start;
  std::int64_t i = 0;
  for (; i + parts <= n; i += parts)
    for (std::int64_t l = 0; l < parts; ++l) sums[l] = plus(sums[l], at(first + i + l));
  for (std::int64_t l = 0; i + l < n; ++l) sums[l] = plus(sums[l], at(first + i + l));
  return fold(sums, plus);
}
template <class R, class At, class Plus>
R reduced(std::int64_t first, std::int64_t n, R start, At at, Plus plus) {
  if (n > summed_at_once<R>) {
    const std::int64_t half = half_of<R>(n);
    return plus(reduced(first, half, start, at, plus), reduced(first + half, n - half, start, at, plus));
  }
  const std::int64_t whole = n / part_count<R> * part_count<R>;
  const R rest = reduced_in_parts<few_parts<R>>(first + whole, n - whole, start, at, plus);
  return whole == 0 ? rest : plus(reduced_in_parts<part_count<R>>(first, whole, start, at, plus), rest);
}
template <class R, class At>
R sum_of(std::int64_t n, At at) {
  return reduced(0, n, R(0), at, [](R a, R b) { return a + b; });
}

// The sums of x[i] - shift, and of their squares.
template <class R>
struct moments {
  R sum, squares;
};
template <class R>
moments<R> moments_of(const R *x, std::int64_t n, R shift) {
  if (n > summed_at_once<R>) {
    const std::int64_t half = half_of<R>(n);
    const moments<R> a = moments_of(x, half, shift), b = moments_of(x + half, n - half, shift);
    return {a.sum + b.sum, a.squares + b.squares};
  }
  constexpr std::int64_t parts = part_count<R> / 2;  // of each of the two sums
  R sums[parts] = {}, squares[parts] = {};
  const auto add = [&](std::int64_t part, R v) {
    sums[part] += v - shift;
    squares[part] += (v - shift) * (v - shift);
  };
  std::int64_t i = 0;
  for (; i + parts <= n; i += parts)
    for (std::int64_t l = 0; l < parts; ++l) add(l, x[i + l]);
  for (; i < n; ++i) add(i % parts, x[i]);
  const auto plus = [](R a, R b) { return a + b; };
  return {fold(sums, plus), fold(squares, plus)};
}

// A maximum of minus infinity is replaced by 0: the row's exponentials, unless there is a NaN, are then all 0.
template <class R>
void softmax_row(R *y, const R *x, std::int64_t n, bool divides) {
  const R lowest = -R(__builtin_huge_val());
  R most = reduced(
      0, n, lowest, [=](std::int64_t i) { return x[i]; }, [](R a, R b) { return b > a ? b : a; });
  if (most == lowest) most = 0;
  apply(y, x, n, [most](R v, std::int64_t) { return decay(v - most); });
  if (!divides) return;
  const R sum = sum_of<R>(n, [=](std::int64_t i) { return y[i]; });
  const R inverse = sum == 0 ? R(0) : R(1) / sum;
  apply(y, y, n, [inverse](R v, std::int64_t) { return v * inverse; });
}

template <class R>
R inner_product(const R *x, const R *y, std::int64_t n) {
  return sum_of<R>(n, [=](std::int64_t i) { return x[i] * y[i]; });
}

float root(float x) { return __builtin_sqrtf(x); }
double root(double x) { return __builtin_sqrt(x); }

// The mean of a layer norm is the rounded one and, beside it, the mean of the differences from that: together they are
// exact where the deviations are small beside the mean.
template <class R>
void norm_row(sg_norm_kind kind, R *y, const R *x, const R *gamma, const R *beta, R epsilon, std::int64_t n) {
  R mean = 0, rest = 0, variance;
  if (kind == SG_NORM_LAYER) {
    mean = sum_of<R>(n, [=](std::int64_t i) { return x[i]; }) / R(n);
    const moments<R> of = moments_of(x, n, mean);
    rest = of.sum / R(n);
    variance = (of.squares - of.sum * rest) / R(n);
    if (variance < 0) variance = 0;
  } else {
    variance = sum_of<R>(n, [=](std::int64_t i) { return x[i] * x[i]; }) / R(n);
  }
  const R factor = R(1) / root(variance + epsilon);
  const auto normal = [=](R v) { return (v - mean - rest) * factor; };
  if (gamma != nullptr && beta != nullptr)
    return apply(y, x, n, [=](R v, std::int64_t i) { return normal(v) * gamma[i] + beta[i]; });
  if (gamma != nullptr) return apply(y, x, n, [=](R v, std::int64_t i) { return normal(v) * gamma[i]; });
  if (beta != nullptr) return apply(y, x, n, [=](R v, std::int64_t i) { return normal(v) + beta[i]; });
  apply(y, x, n, [=](R v, std::int64_t) { return normal(v); });
}

// The gradients of a norm of a row; `products` NULL: none. dx may be dy or x.
template <class R, class Scaled>
void norm_gradient_row(sg_norm_kind kind, R *dx, R *products, const R *dy, const R *x, R epsilon, std::int64_t n,
                       Scaled scaled) {
  R mean = 0, rest = 0, of_gradient = 0;
  if (kind == SG_NORM_LAYER) {
    mean = sum_of<R>(n, [=](std::int64_t i) { return x[i]; }) / R(n);
    rest = sum_of<R>(n, [=](std::int64_t i) { return x[i] - mean; }) / R(n);
    of_gradient = sum_of<R>(n, scaled) / R(n);
  }
  const auto centred = [=](std::int64_t i) { return x[i] - mean - rest; };
  const R variance = sum_of<R>(n, [=](std::int64_t i) { return centred(i) * centred(i); }) / R(n);
  const R factor = R(1) / root(variance + epsilon);
  const R of_product = sum_of<R>(n, [=](std::int64_t i) { return scaled(i) * (centred(i) * factor); }) / R(n);
  if (products != nullptr) apply(products, dy, n, [=](R v, std::int64_t i) { return v * (centred(i) * factor); });
  apply(dx, x, n, [=](R v, std::int64_t i) {
    return factor * (scaled(i) - of_gradient - (v - mean - rest) * factor * of_product);
  });
}

}  // namespace

void softmax(sg_dtype type, void *y, const void *x, std::int64_t n, bool divides) {
  with_real(type, [=]<class R>(R) { softmax_row(static_cast<R *>(y), static_cast<const R *>(x), n, divides); });
}

void softmax_gradient(sg_dtype type, void *dx, const void *y, const void *dy, std::int64_t n) {
  with_real(type, [=]<class R>(R) {
    const auto *const weights = static_cast<const R *>(y), *const gradients = static_cast<const R *>(dy);
    const R sum = inner_product(weights, gradients, n);
    apply_to_two(static_cast<R *>(dx), weights, gradients, n, [sum](R v, R w) { return v * (w - sum); });
  });
}

void norm(sg_dtype type, sg_norm_kind kind, void *y, const void *x, const void *gamma, const void *beta, double epsilon,
          std::int64_t n) {
  with_real(type, [=]<class R>(R) {
    norm_row(kind, static_cast<R *>(y), static_cast<const R *>(x), static_cast<const R *>(gamma),
             static_cast<const R *>(beta), R(epsilon), n);
  });
}

void norm_gradient(sg_dtype type, sg_norm_kind kind, void *dx, void *products, const void *dy, const void *x,
                   const void *gamma, double epsilon, std::int64_t n) {
  with_real(type, [=]<class R>(R) {
    const auto *const gradient = static_cast<const R *>(dy), *const factors = static_cast<const R *>(gamma);
    const auto row = [=](auto scaled) {
      norm_gradient_row(kind, static_cast<R *>(dx), static_cast<R *>(products), gradient, static_cast<const R *>(x),
                        R(epsilon), n, scaled);
    };
    if (factors != nullptr) return row([=](std::int64_t i) { return gradient[i] * factors[i]; });
    row([=](std::int64_t i) { return gradient[i]; });
  });
}

void dot(sg_dtype type, void *sum, const void *x, const void *y, std::int64_t n) {
  with_real(type, [=]<class R>(R) {
    *static_cast<R *>(sum) = inner_product(static_cast<const R *>(x), static_cast<const R *>(y), n);
  });
}

float sum(const float *x, std::int64_t n) {
  return sum_of<float>(n, [=](std::int64_t i) { return x[i]; });
}

void divide(float *x, float divisor, std::int64_t n) {
  apply(x, x, n, [divisor](float v, std::int64_t) { return v / divisor; });
}

}  // namespace sg::cpu::SG_CPU_LEVEL
