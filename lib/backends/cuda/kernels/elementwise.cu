// SPDX-License-Identifier: Apache-2.0
// C = function(A) or function(A, B).
#include <cmath>
#include <cstdint>

#include "arithmetic.cuh"
#include "layers.hpp"
#include "pack.cuh"

namespace sg::cuda {
namespace {

constexpr int threads = 256;

inline __device__ float complementary(float x) { return erfcf(x); }
inline __device__ double complementary(double x) { return erfc(x); }
inline __device__ float hyperbolic(float x) { return tanhf(x); }
inline __device__ double hyperbolic(double x) { return tanh(x); }

// A times the sigmoid of x, without overflow; 0 for A at minus infinity.
template <class Real>
__device__ Real times_sigmoid(Real a, Real x) {
  const Real e = exponential(x < 0 ? x : -x);
  const Real product = a * ((x < 0 ? e : Real(1)) / (1 + e));
  return a == -Real(INFINITY) ? Real(0) : product;
}

// Of x times the sigmoid of t.
template <class Real>
__device__ Real derivative_of_product(Real x, Real t, Real t_derivative) {
  const Real e = exponential(t < 0 ? t : -t), sum = 1 + e;
  return (t < 0 ? e : Real(1)) / sum + x * t_derivative * e / (sum * sum);
}

// Of a function. Far from 0 it is the limit.
template <class Real>
__device__ Real derivative_of(sg_function function, Real given) {
  const Real x = given < -1000 ? Real(-1000) : given > 1000 ? Real(1000) : given;
  const Real gelu_1 = Real(1.5957691216057308), gelu_3 = Real(0.071354816272600249);
  if (function == SG_FUNCTION_GELU)
    return derivative_of_product(x, x * (gelu_1 + gelu_3 * x * x), gelu_1 + 3 * gelu_3 * x * x);
  if (function == SG_FUNCTION_SILU) return derivative_of_product(x, x, Real(1));
  if (function == SG_FUNCTION_GELU_ERF)
    return Real(0.5) * complementary(x * Real(-0.70710678118654752)) +
           x * Real(0.39894228040143268) * exponential(Real(-0.5) * x * x);
  const Real distance = x < 0 ? -x : x;
  const Real e = exponential(function == SG_FUNCTION_TANH ? -2 * distance : -distance), sum = 1 + e;
  return (function == SG_FUNCTION_TANH ? 4 * e : e) / (sum * sum);
}

template <class Real>
__device__ Real value_of(sg_function function, Real a, Real b) {
  switch (function) {
    case SG_FUNCTION_RELU: return a < 0 ? Real(0) : a;
    case SG_FUNCTION_GELU: return times_sigmoid(a, a * (Real(1.5957691216057308) + Real(0.071354816272600249) * a * a));
    case SG_FUNCTION_GELU_ERF:
      return a == -Real(INFINITY) ? Real(0) : Real(0.5) * a * complementary(a * Real(-0.70710678118654752));
    case SG_FUNCTION_SILU: return times_sigmoid(a, a);
    case SG_FUNCTION_SIGMOID: return times_sigmoid(Real(1), a);
    case SG_FUNCTION_TANH: return hyperbolic(a);
    case SG_FUNCTION_ADD: return a + b;
    case SG_FUNCTION_MULTIPLY: return a * b;
    case SG_FUNCTION_RELU_GRADIENT: return a * (b > 0 ? Real(1) : b <= 0 ? Real(0) : b);
    case SG_FUNCTION_GELU_GRADIENT: return a * derivative_of(SG_FUNCTION_GELU, b);
    case SG_FUNCTION_GELU_ERF_GRADIENT: return a * derivative_of(SG_FUNCTION_GELU_ERF, b);
    case SG_FUNCTION_SILU_GRADIENT: return a * derivative_of(SG_FUNCTION_SILU, b);
    case SG_FUNCTION_SIGMOID_GRADIENT: return a * derivative_of(SG_FUNCTION_SIGMOID, b);
    case SG_FUNCTION_TANH_GRADIENT: return a * derivative_of(SG_FUNCTION_TANH, b);
  }
  return a;
}

// A thread computes `count` neighbours of a column at a time; fewer at its end.
template <class T, int count>
__global__ void elementwise_kernel(sg_backend_elementwise what) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  for (std::int64_t j = blockIdx.y; j < what.n; j += gridDim.y) {
    const T *a = static_cast<const T *>(what.a) + j * what.lda;
    const T *b = what.b == nullptr ? nullptr : static_cast<const T *>(what.b) + j * what.ldb;
    T *c = static_cast<T *>(what.c) + j * what.ldc;
    const auto value = [&](T x, T y) {
      return ops::rounded(value_of<real>(what.function, ops::widened(x), ops::widened(y)));
    };
    for (std::int64_t i = (std::int64_t(blockIdx.x) * threads + threadIdx.x) * count; i < what.m;
         i += std::int64_t(gridDim.x) * threads * count) {
      if (i + count <= what.m) {
        const pack<T, count> x = load_pack<count>(a + i), y = b == nullptr ? x : load_pack<count>(b + i);
        pack<T, count> out;
#pragma unroll
        for (int v = 0; v < count; ++v) out.at[v] = value(x.at[v], y.at[v]);
        store_pack(c + i, out);
      } else {
        for (std::int64_t at = i; at < what.m; ++at) c[at] = value(a[at], b == nullptr ? a[at] : b[at]);
      }
    }
  }
}

template <class T, int count>
cudaError_t launch_packs(const sg_backend_elementwise &what, cudaStream_t in) {
  const auto blocks = [](std::int64_t wanted, std::int64_t most) { return unsigned(wanted < most ? wanted : most); };
  const std::int64_t run = std::int64_t(threads) * count;
  const dim3 grid(blocks((what.m + run - 1) / run, 1 << 16), blocks(what.n, 4096));
  elementwise_kernel<T, count><<<grid, threads, 0, in>>>(what);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_typed(const sg_backend_elementwise &given, cudaStream_t in) {
  const sg_backend_elementwise what = as_one_column(given);
  return pack_of(what) == whole_pack<T> ? launch_packs<T, whole_pack<T>>(what, in) : launch_packs<T, 1>(what, in);
}

}  // namespace

cudaError_t launch_elementwise(const sg_backend_elementwise &what, cudaStream_t in) noexcept {
  switch (what.type) {
    case SG_DTYPE_F64: return launch_typed<double>(what, in);
    case SG_DTYPE_F32: return launch_typed<float>(what, in);
    case SG_DTYPE_F16: return launch_typed<__half>(what, in);
    case SG_DTYPE_BF16: return launch_typed<__nv_bfloat16>(what, in);
    default: return cudaErrorNotSupported;
  }
}

}  // namespace sg::cuda
