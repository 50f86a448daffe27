// SPDX-License-Identifier: Apache-2.0
// Inner loops, compiled for each vector width (simd.cpp, several times), and the choice of the widest that this
// processor supports.
#pragma once

#include <streamgemm/types.h>

#include <cstdint>

namespace sg::cpu {

struct gemm_args;

// The operations of layers.h and convert.h, from n contiguous elements of f32 or f64 to as many, which may be the same.
struct simd_layer_ops {
  void (*unary)(sg_dtype type, sg_function function, void *y, const void *x, std::int64_t n);
  void (*binary)(sg_dtype type, sg_function function, void *y, const void *a, const void *b, std::int64_t n);
  // Without `divides` the exponentials only, of x less the maximum.
  void (*softmax)(sg_dtype type, void *y, const void *x, std::int64_t n, bool divides);
  // dx = y * (dy - the sum of y * dy).
  void (*softmax_gradient)(sg_dtype type, void *dx, const void *y, const void *dy, std::int64_t n);
  // gamma, beta: of the same type; NULL: ones, zeros.
  void (*norm)(sg_dtype type, sg_norm_kind kind, void *y, const void *x, const void *gamma, const void *beta,
               double epsilon, std::int64_t n);
  // dX and, unless `products` is NULL, the products of dY and the normalized X, which dgamma sums. gamma: as in norm.
  void (*norm_gradient)(sg_dtype type, sg_norm_kind kind, void *dx, void *products, const void *dy, const void *x,
                        const void *gamma, double epsilon, std::int64_t n);
  void (*dot)(sg_dtype type, void *sum, const void *x, const void *y, std::int64_t n);
  float (*sum)(const float *x, std::int64_t n);
  void (*divide)(float *x, float divisor, std::int64_t n);
  void (*f32_from_f64)(float *dst, const double *src, std::int64_t n);
  void (*odd_f32_from_f64)(float *dst, const double *src, std::int64_t n);  // rounded to odd
  void (*f64_from_f32)(double *dst, const float *src, std::int64_t n);
  // Rotates `half` pairs of y. cos and sin: one for each pair.
  void (*rotate)(sg_dtype type, sg_rotary_pairs pairs, void *y, const void *cos, const void *sin, std::int64_t half);
  // Values first..last-1 of a row of quantized values, into y[0..]: less the zero of their block, times its scale.
  // zeros: NULL: none. block_size, first and last are even.
  void (*dequantize)(sg_quantization quantization, float *y, const void *x, const float *scales, const float *zeros,
                     std::int64_t block_size, std::int64_t first, std::int64_t last);
};

// Loops over n contiguous elements. Rounding to a shorter format is to nearest, ties to even; NaN stays NaN.
struct simd_ops {
  std::int32_t vector_bytes;
  bool fused;  // multiply-add in one instruction

  void (*f32_from_f16)(float *dst, const std::uint16_t *src, std::int64_t n);
  void (*f32_from_bf16)(float *dst, const std::uint16_t *src, std::int64_t n);
  void (*f32_from_i8)(float *dst, const std::int8_t *src, std::int64_t n);
  void (*f32_from_e4m3)(float *dst, const std::uint8_t *src, std::int64_t n);
  void (*f32_from_e5m2)(float *dst, const std::uint8_t *src, std::int64_t n);
  void (*bf16_from_e4m3)(std::uint16_t *dst, const std::uint8_t *src, std::int64_t n);
  void (*bf16_from_e5m2)(std::uint16_t *dst, const std::uint8_t *src, std::int64_t n);
  void (*f16_from_f32)(std::uint16_t *dst, const float *src, std::int64_t n);
  void (*bf16_from_f32)(std::uint16_t *dst, const float *src, std::int64_t n);
  void (*i32_add_f32)(std::int32_t *dst, const float *src, std::int64_t n);  // dst += src, whole numbers

  // y = beta * y; y = y + x; y = alpha * x; y = alpha * x + beta * y. For accumulator types: f64, f32, c64, c128, i32.
  void (*scale)(sg_dtype type, void *y, sg_scalar beta, std::int64_t n);
  void (*add)(sg_dtype type, void *y, const void *x, std::int64_t n);
  void (*scaled)(sg_dtype type, void *y, sg_scalar alpha, const void *x, std::int64_t n);
  void (*scaled_add)(sg_dtype type, void *y, sg_scalar alpha, const void *x, sg_scalar beta, std::int64_t n);

  // y = activation(y + bias), with a bias of the accumulator's type for each element, or one for all; NULL: none.
  void (*finish)(sg_dtype type, void *y, const void *bias, bool one_each, sg_activation activation, std::int64_t n);

  // C += A * B, column major, f64, f32, c64 or c128.
  void (*multiply)(sg_dtype type, std::int64_t m, std::int64_t n, std::int64_t k, const void *a, std::int64_t lda,
                   const void *b, std::int64_t ldb, void *c, std::int64_t ldc);

  // A small GEMM of f32 with op_a N, any scalars, on unpacked operands. NULL: not at this width.
  void (*multiply_small)(const gemm_args &p) noexcept;

  const simd_layer_ops *layers;
};

const simd_ops &simd() noexcept;

// SG_CPU_ISA limits the instruction set, to test the code for other processors. A level above "baseline": "avx2",
// "avx512" or "mmla" (mma.hpp).
bool isa_allows(const char *level) noexcept;

}  // namespace sg::cpu
