// SPDX-License-Identifier: Apache-2.0
// The loops of simd.hpp for one instruction set, named by SG_CPU_LEVEL. They must not use inline functions of other
// headers, unless these are always inlined: the linker keeps one copy of a function, possibly compiled for instructions
// that this processor lacks.
#include "simd.hpp"

#include "simd_exponential.hpp"

namespace sg::cpu::SG_CPU_LEVEL {
namespace {

void f32_from_e4m3(float *dst, const std::uint8_t *src, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = f32_of_e4m3(src[i]);
}
void f32_from_e5m2(float *dst, const std::uint8_t *src, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = f32_of_e5m2(src[i]);
}
// Exact: bf16 has the exponent range and fraction bits.
void bf16_from_e4m3(std::uint16_t *dst, const std::uint8_t *src, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = static_cast<std::uint16_t>(bits_of(f32_of_e4m3(src[i])) >> 16);
}
void bf16_from_e5m2(std::uint16_t *dst, const std::uint8_t *src, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = static_cast<std::uint16_t>(bits_of(f32_of_e5m2(src[i])) >> 16);
}
void f32_from_f16(float *dst, const std::uint16_t *src, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = f32_of_f16(src[i]);
}
void f32_from_bf16(float *dst, const std::uint16_t *src, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = f32_of_bf16(src[i]);
}
void f32_from_i8(float *dst, const std::int8_t *src, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = static_cast<float>(src[i]);
}
void f16_from_f32(std::uint16_t *dst, const float *src, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = f16_of_f32(src[i]);
}
void bf16_from_f32(std::uint16_t *dst, const float *src, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = bf16_of_f32(src[i]);
}
void i32_add_f32(std::int32_t *dst, const float *src, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    dst[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(dst[i]) +
                                       static_cast<std::uint32_t>(static_cast<std::int32_t>(src[i])));
}

// Accumulators. i32 sums are modulo 2^32, so its scalars are too.
std::uint32_t modulo_2_32(double whole) {
  const double rest =
      whole - 4294967296.0 * __builtin_floor(whole / 4294967296.0);  // exact: the divisor is a power of 2
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(rest));
}

template <class R>
struct complex {
  R re, im;
};
template <class R>
complex<R> operator*(complex<R> x, complex<R> y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
template <class R>
complex<R> operator+(complex<R> x, complex<R> y) {
  return {x.re + y.re, x.im + y.im};
}

void convert(sg_scalar from, double &to) { to = from.re; }
void convert(sg_scalar from, float &to) { to = static_cast<float>(from.re); }
void convert(sg_scalar from, std::uint32_t &to) { to = modulo_2_32(from.re); }
template <class R>
void convert(sg_scalar from, complex<R> &to) {
  to = {static_cast<R>(from.re), static_cast<R>(from.im)};
}
template <class T>
T scalar_of(sg_scalar from) {
  T to;
  convert(from, to);
  return to;
}

// Calls body with a value of the accumulator's C++ type.
template <class Body>
void with_type(sg_dtype type, Body body) {
  switch (type) {
    case SG_DTYPE_F64: return body(double{});
    case SG_DTYPE_F32: return body(float{});
    case SG_DTYPE_C64: return body(complex<float>{});
    case SG_DTYPE_C128: return body(complex<double>{});
    case SG_DTYPE_I32: return body(std::uint32_t{});
    default: return;
  }
}

void scale(sg_dtype type, void *y, sg_scalar beta, std::int64_t n) {
  with_type(type, [=]<class T>(T) {
    const T factor = scalar_of<T>(beta);
    auto *to = static_cast<T *>(y);
    for (std::int64_t i = 0; i < n; ++i) to[i] = factor * to[i];
  });
}
void add(sg_dtype type, void *y, const void *x, std::int64_t n) {
  with_type(type, [=]<class T>(T) {
    auto *to = static_cast<T *>(y);
    const auto *from = static_cast<const T *>(x);
    for (std::int64_t i = 0; i < n; ++i) to[i] = to[i] + from[i];
  });
}
void scaled(sg_dtype type, void *y, sg_scalar alpha, const void *x, std::int64_t n) {
  with_type(type, [=]<class T>(T) {
    const T factor = scalar_of<T>(alpha);
    auto *to = static_cast<T *>(y);
    const auto *from = static_cast<const T *>(x);
    for (std::int64_t i = 0; i < n; ++i) to[i] = factor * from[i];
  });
}
void scaled_add(sg_dtype type, void *y, sg_scalar alpha, const void *x, sg_scalar beta, std::int64_t n) {
  with_type(type, [=]<class T>(T) {
    const T factor = scalar_of<T>(alpha), kept = scalar_of<T>(beta);
    auto *to = static_cast<T *>(y);
    const auto *from = static_cast<const T *>(x);
    for (std::int64_t i = 0; i < n; ++i) to[i] = factor * from[i] + kept * to[i];
  });
}

// Half of x times 1 + tanh(u) is x / (1 + e^-2u), which is accurate where tanh(u) is near -1; 0 at minus infinity.
template <class R>
SG_IN_LOOP R gelu(R x) {
  const R twice_minus_u = x * (R(-1.5957691216057308) + R(-0.071354816272600249) * x * x);
  const R value = x / (R(1) + exponential(twice_minus_u));
  return x == -R(__builtin_huge_val()) ? R(0) : value;
}

SG_IN_LOOP float relu(float x) { return x < 0 ? 0 : x; }
SG_IN_LOOP double relu(double x) { return x < 0 ? 0 : x; }
SG_IN_LOOP std::uint32_t relu(std::uint32_t x) { return static_cast<std::int32_t>(x) < 0 ? 0u : x; }

template <class T, class Activation>
void finish_all(T *y, const T *bias, bool one_each, std::int64_t n, Activation activation) {
  if (bias == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = activation(y[i]);
  } else if (one_each) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = activation(y[i] + bias[i]);
  } else {
    const T value = *bias;
    for (std::int64_t i = 0; i < n; ++i) y[i] = activation(y[i] + value);
  }
}

// Not called for types without activations.
void finish(sg_dtype type, void *y, const void *bias, bool one_each, sg_activation activation, std::int64_t n) {
  with_type(type, [=]<class T>(T) {
    auto *to = static_cast<T *>(y);
    const auto *from = static_cast<const T *>(bias);
    if constexpr (requires(T x) { relu(x); })
      if (activation == SG_ACTIVATION_RELU) return finish_all(to, from, one_each, n, [](T x) { return relu(x); });
    if constexpr (requires(T x) { exponential(x) / x; })
      if (activation == SG_ACTIVATION_GELU) return finish_all(to, from, one_each, n, [](T x) { return gelu(x); });
    if (from != nullptr) finish_all(to, from, one_each, n, [](T x) { return x; });
  });
}

#if defined(__AVX512F__)
constexpr std::int32_t vector_bytes = 64;
#elif defined(__AVX2__)
constexpr std::int32_t vector_bytes = 32;
#else
constexpr std::int32_t vector_bytes = 16;
#endif
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr std::int64_t vector_registers = 32;
#else
constexpr std::int64_t vector_registers = 16;
#endif

// A strip of `rows` rows (a constant, so that the sums stay in registers) by `columns` columns of C.
template <std::int64_t rows, std::int64_t columns, class T>
void multiply_strip(std::int64_t k, const T *a, std::int64_t lda, const T *b, std::int64_t ldb, T *c,
                    std::int64_t ldc) {
  T sums[columns][rows] = {};
  for (std::int64_t p = 0; p < k; ++p)
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = 0; i < rows; ++i) sums[j][i] = sums[j][i] + a[i + p * lda] * b[p + j * ldb];
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i) c[i + j * ldc] = c[i + j * ldc] + sums[j][i];
}

// The same of reals, with as many rows as `count` vectors have: compilers do not vectorize the loops above for each
// type and width.
template <std::int64_t count, std::int64_t columns, class T>
void multiply_vectors(std::int64_t k, const T *a, std::int64_t lda, const T *b, std::int64_t ldb, T *c,
                      std::int64_t ldc) {
  constexpr std::int64_t rows = vector_bytes / sizeof(T);
  using vector [[gnu::vector_size(vector_bytes)]] = T;
  vector sums[columns][count] = {}, x;
  for (std::int64_t p = 0; p < k; ++p)
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < count; ++i) {
      __builtin_memcpy(&x, a + i * rows + p * lda, sizeof x);
#pragma GCC unroll 4
      for (std::int64_t j = 0; j < columns; ++j) sums[j][i] = sums[j][i] + x * b[p + j * ldb];
    }
#pragma GCC unroll 4
  for (std::int64_t j = 0; j < columns; ++j)
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < count; ++i) {
      __builtin_memcpy(&x, c + i * rows + j * ldc, sizeof x);
      x = x + sums[j][i];
      __builtin_memcpy(c + i * rows + j * ldc, &x, sizeof x);
    }
}

template <std::int64_t columns, class T>
void multiply_columns(std::int64_t m, std::int64_t k, const T *a, std::int64_t lda, const T *b, std::int64_t ldb, T *c,
                      std::int64_t ldc) {
  std::int64_t i = 0;
  if constexpr (requires(T x) { x < x; }) {
    constexpr std::int64_t count = vector_registers / 8, rows = vector_bytes / sizeof(T);
    for (; i + count * rows <= m; i += count * rows)
      multiply_vectors<count, columns>(k, a + i, lda, b, ldb, c + i, ldc);
    for (; i + rows <= m; i += rows) multiply_vectors<1, columns>(k, a + i, lda, b, ldb, c + i, ldc);
  } else {
    constexpr std::int64_t rows = 128 / sizeof(T);
    for (; i + rows <= m; i += rows) multiply_strip<rows, columns>(k, a + i, lda, b, ldb, c + i, ldc);
  }
  for (; i < m; ++i) multiply_strip<1, columns>(k, a + i, lda, b, ldb, c + i, ldc);
}

void multiply(sg_dtype type, std::int64_t m, std::int64_t n, std::int64_t k, const void *a, std::int64_t lda,
              const void *b, std::int64_t ldb, void *c, std::int64_t ldc) {
  with_type(type, [=]<class T>(T) {
    const auto *first = static_cast<const T *>(a), *second = static_cast<const T *>(b);
    auto *result = static_cast<T *>(c);
    std::int64_t j = 0;
    for (; j + 4 <= n; j += 4) multiply_columns<4>(m, k, first, lda, second + j * ldb, ldb, result + j * ldc, ldc);
    for (; j < n; ++j) multiply_columns<1>(m, k, first, lda, second + j * ldb, ldb, result + j * ldc, ldc);
  });
}

#ifdef __FP_FAST_FMA
constexpr bool fused = true;
#else
constexpr bool fused = false;
#endif

}  // namespace

#if defined(__AVX512F__)
void multiply_small(const gemm_args &p) noexcept;  // small_avx512.cpp
#else
constexpr void (*multiply_small)(const gemm_args &p) noexcept = nullptr;
#endif

extern const simd_layer_ops layer_ops;  // simd_layers.cpp
extern const simd_ops ops;
const simd_ops ops = {
    vector_bytes,   fused,          f32_from_f16, f32_from_bf16, f32_from_i8,    f32_from_e4m3, f32_from_e5m2,
    bf16_from_e4m3, bf16_from_e5m2, f16_from_f32, bf16_from_f32, i32_add_f32,    scale,         add,
    scaled,         scaled_add,     finish,       multiply,      multiply_small, &layer_ops};

}  // namespace sg::cpu::SG_CPU_LEVEL
