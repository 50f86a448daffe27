// SPDX-License-Identifier: Apache-2.0
// C = function(A) or function(A, B).
#include <cmath>
#include <cstdint>

#include "arithmetic.cuh"
#include "layers.hpp"
#include "map.cuh"

namespace sg::cuda {
inline namespace elementwise_cu {

inline __device__ float complementary(float x) { return erfcf(x); }
inline __device__ double complementary(double x) { return erfc(x); }
inline __device__ float hyperbolic(float x) { return tanhf(x); }
inline __device__ double hyperbolic(double x) { return tanh(x); }

// Exponentials and quotients of f32, for results of 16 bits within some units of f32; of b from 1 to 2.
template <bool fast, class Real>
__device__ Real exponential_of(Real x) {
  if constexpr (fast) return __expf(x);
  return exponential(x);
}
template <bool fast, class Real>
__device__ Real quotient(Real a, Real b) {
  if constexpr (fast) return __fdividef(a, b);
  return a / b;
}

// A times the sigmoid of x, without overflow; 0 for A at minus infinity.
template <bool fast, class Real>
__device__ Real times_sigmoid(Real a, Real x) {
  const Real e = exponential_of<fast>(x < 0 ? x : -x);
  const Real product = a * quotient<fast>(x < 0 ? e : Real(1), 1 + e);
  return a == -Real(INFINITY) ? Real(0) : product;
}

// Of x times the sigmoid of t.
template <bool fast, class Real>
__device__ Real derivative_of_product(Real x, Real t, Real t_derivative) {
  const Real e = exponential_of<fast>(t < 0 ? t : -t), share = quotient<fast>(Real(1), 1 + e);
  return (t < 0 ? e : Real(1)) * share + x * t_derivative * e * share * share;
}

// Of a function. Far from 0 it is the limit.
template <sg_function function, bool fast, class Real>
__device__ Real derivative_of(Real given) {
  const Real x = given < -1000 ? Real(-1000) : given > 1000 ? Real(1000) : given;
  const Real gelu_1 = Real(1.5957691216057308), gelu_3 = Real(0.071354816272600249);
  if constexpr (function == SG_FUNCTION_GELU)
    return derivative_of_product<fast>(x, x * (gelu_1 + gelu_3 * x * x), gelu_1 + 3 * gelu_3 * x * x);
  if constexpr (function == SG_FUNCTION_SILU) return derivative_of_product<fast>(x, x, Real(1));
  if constexpr (function == SG_FUNCTION_GELU_ERF)
    return Real(0.5) * complementary(x * Real(-0.70710678118654752)) +
           x * Real(0.39894228040143268) * exponential(Real(-0.5) * x * x);
  const Real distance = x < 0 ? -x : x;
  const Real e = exponential_of<fast>(function == SG_FUNCTION_TANH ? -2 * distance : -distance);
  const Real share = quotient<fast>(Real(1), 1 + e);
  return (function == SG_FUNCTION_TANH ? 4 * e : e) * share * share;
}

// Calls each(f) once with f(a, b) of the function.
template <bool fast, class Real, class Each>
__device__ void with_function(sg_function function, Each each) {
  switch (function) {
    case SG_FUNCTION_RELU: return each([](Real a, Real) { return a < 0 ? Real(0) : a; });
    case SG_FUNCTION_GELU:
      return each([](Real a, Real) {
        return times_sigmoid<fast>(a, a * (Real(1.5957691216057308) + Real(0.071354816272600249) * a * a));
      });
    case SG_FUNCTION_GELU_ERF:
      return each([](Real a, Real) {
        return a == -Real(INFINITY) ? Real(0) : Real(0.5) * a * complementary(a * Real(-0.70710678118654752));
      });
    case SG_FUNCTION_SILU: return each([](Real a, Real) { return times_sigmoid<fast>(a, a); });
    case SG_FUNCTION_SIGMOID: return each([](Real a, Real) { return times_sigmoid<fast>(Real(1), a); });
    case SG_FUNCTION_TANH: return each([](Real a, Real) { return hyperbolic(a); });
    case SG_FUNCTION_ADD: return each([](Real a, Real b) { return a + b; });
    case SG_FUNCTION_MULTIPLY: return each([](Real a, Real b) { return a * b; });
    case SG_FUNCTION_RELU_GRADIENT:
      return each([](Real a, Real b) { return a * (b > 0 ? Real(1) : b <= 0 ? Real(0) : b); });
    case SG_FUNCTION_GELU_GRADIENT:
      return each([](Real a, Real b) { return a * derivative_of<SG_FUNCTION_GELU, fast>(b); });
    case SG_FUNCTION_GELU_ERF_GRADIENT:
      return each([](Real a, Real b) { return a * derivative_of<SG_FUNCTION_GELU_ERF, fast>(b); });
    case SG_FUNCTION_SILU_GRADIENT:
      return each([](Real a, Real b) { return a * derivative_of<SG_FUNCTION_SILU, fast>(b); });
    case SG_FUNCTION_SIGMOID_GRADIENT:
      return each([](Real a, Real b) { return a * derivative_of<SG_FUNCTION_SIGMOID, fast>(b); });
    case SG_FUNCTION_TANH_GRADIENT:
      return each([](Real a, Real b) { return a * derivative_of<SG_FUNCTION_TANH, fast>(b); });
  }
}

template <bool fast>
struct function_of_elements {
  sg_function function;

  template <class Real, int count>
  __device__ void operator()(Real (&c)[count], const Real (&a)[count], const Real (&b)[count]) const {
    with_function<fast, Real>(function, [&](auto f) {
#pragma unroll
      for (int v = 0; v < count; ++v) c[v] = f(a[v], b[v]);
    });
  }
};

// A kernel of its own for each function: the code of all of them takes a short launch about as long to load as to run.
template <sg_function function, bool fast>
struct one_function {
  template <class Real, int count>
  __device__ void operator()(Real (&c)[count], const Real (&a)[count], const Real (&b)[count]) const {
    function_of_elements<fast>{function}(c, a, b);
  }
};

template <class T>
cudaError_t launch_typed(const sg_backend_elementwise &given, cudaStream_t in) {
  constexpr bool fast = sizeof(T) == 2;
  constexpr int count = whole_pack<T>;
  const sg_backend_elementwise what = as_one_column(given);
  const map_operands p{what.m, what.n, what.a, what.lda, what.b, what.ldb, what.c, what.ldc};
  if (pack_of(what) != count) return launch_map<T, 1>(p, function_of_elements<fast>{what.function}, in);
  switch (what.function) {
#define SG_CASE(FUNCTION) \
  case FUNCTION: return launch_map<T, count>(p, one_function<FUNCTION, fast>(), in);
    SG_CASE(SG_FUNCTION_RELU)
    SG_CASE(SG_FUNCTION_GELU)
    SG_CASE(SG_FUNCTION_GELU_ERF)
    SG_CASE(SG_FUNCTION_SILU)
    SG_CASE(SG_FUNCTION_SIGMOID)
    SG_CASE(SG_FUNCTION_TANH)
    SG_CASE(SG_FUNCTION_ADD)
    SG_CASE(SG_FUNCTION_MULTIPLY)
    SG_CASE(SG_FUNCTION_RELU_GRADIENT)
    SG_CASE(SG_FUNCTION_GELU_GRADIENT)
    SG_CASE(SG_FUNCTION_GELU_ERF_GRADIENT)
    SG_CASE(SG_FUNCTION_SILU_GRADIENT)
    SG_CASE(SG_FUNCTION_SIGMOID_GRADIENT)
    SG_CASE(SG_FUNCTION_TANH_GRADIENT)
#undef SG_CASE
  }
  return cudaErrorNotSupported;
}

}  // namespace elementwise_cu

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
