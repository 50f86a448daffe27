// SPDX-License-Identifier: Apache-2.0
// C's types on the device: accumulators and activations.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <streamgemm/types.h>

#include <cmath>
#include <cstdint>

namespace sg::cuda {

struct complex32 {
  float re, im;
};
struct complex64 {
  double re, im;
};

// The accumulator of a type, its widening, and its rounding.
template <class T>
struct arithmetic {
  using sum = T;
  static __device__ sum scaled(sg_scalar s, T x) { return T(s.re) * x; }
  static __device__ sum widened(T x) { return x; }
  static __device__ sum plus(sum a, sum b) { return a + b; }
  static __device__ T rounded(sum x) { return x; }
};

template <class T, class Real>
struct complex_arithmetic {
  using sum = T;
  static __device__ T scaled(sg_scalar s, T x) {
    const Real re = Real(s.re), im = Real(s.im);
    return {re * x.re - im * x.im, re * x.im + im * x.re};
  }
  static __device__ T widened(T x) { return x; }
  static __device__ T plus(T a, T b) { return {a.re + b.re, a.im + b.im}; }
  static __device__ T rounded(T x) { return x; }
};
template <>
struct arithmetic<complex32> : complex_arithmetic<complex32, float> {};
template <>
struct arithmetic<complex64> : complex_arithmetic<complex64, double> {};

// Wraps modulo 2^32.
template <>
struct arithmetic<std::int32_t> {
  using sum = std::int32_t;
  static __device__ sum scaled(sg_scalar s, sum x) { return sum(std::uint32_t(std::int64_t(s.re)) * std::uint32_t(x)); }
  static __device__ sum widened(sum x) { return x; }
  static __device__ sum plus(sum a, sum b) { return sum(std::uint32_t(a) + std::uint32_t(b)); }
  static __device__ sum rounded(sum x) { return x; }
};

template <>
struct arithmetic<__half> {
  using sum = float;
  static __device__ sum scaled(sg_scalar s, __half x) { return float(s.re) * __half2float(x); }
  static __device__ sum widened(__half x) { return __half2float(x); }
  static __device__ sum plus(sum a, sum b) { return a + b; }
  static __device__ __half rounded(sum x) { return __float2half_rn(x); }
};
template <>
struct arithmetic<__nv_bfloat16> {
  using sum = float;
  static __device__ sum scaled(sg_scalar s, __nv_bfloat16 x) { return float(s.re) * __bfloat162float(x); }
  static __device__ sum widened(__nv_bfloat16 x) { return __bfloat162float(x); }
  static __device__ sum plus(sum a, sum b) { return a + b; }
  static __device__ __nv_bfloat16 rounded(sum x) { return __float2bfloat16_rn(x); }
};

inline __device__ float exponential(float x) { return expf(x); }
inline __device__ double exponential(double x) { return exp(x); }
inline __device__ float square_root(float x) { return sqrtf(x); }
inline __device__ double square_root(double x) { return sqrt(x); }

// Keeps a NaN. Half of x times 1 + tanh(u) is x / (1 + e^-2u), which is accurate where tanh(u) is near -1; 0 at minus
// infinity.
template <class Real>
__device__ Real activated_real(Real x, sg_activation activation) {
  if (activation == SG_ACTIVATION_RELU) return x < 0 ? Real(0) : x;
  if (activation != SG_ACTIVATION_GELU) return x;
  const Real value = x / (1 + exponential(x * (Real(-1.5957691216057308) - Real(0.071354816272600249) * x * x)));
  return x == -Real(INFINITY) ? Real(0) : value;
}
inline __device__ float activated(float x, sg_activation activation) { return activated_real(x, activation); }
inline __device__ double activated(double x, sg_activation activation) { return activated_real(x, activation); }
inline __device__ std::int32_t activated(std::int32_t x, sg_activation activation) {
  return activation == SG_ACTIVATION_RELU && x < 0 ? 0 : x;
}
inline __device__ complex32 activated(complex32 x, sg_activation) { return x; }
inline __device__ complex64 activated(complex64 x, sg_activation) { return x; }

}  // namespace sg::cuda
