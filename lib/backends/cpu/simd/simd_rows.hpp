// SPDX-License-Identifier: Apache-2.0
// The operations on rows among the loops of simd_layer_ops.
#pragma once

#include <streamgemm/types.h>

#include <cstdint>

namespace sg::cpu::SG_CPU_LEVEL {

void softmax(sg_dtype type, void *y, const void *x, std::int64_t n, bool divides);
void softmax_gradient(sg_dtype type, void *dx, const void *y, const void *dy, std::int64_t n);
void norm(sg_dtype type, sg_norm_kind kind, void *y, const void *x, const void *gamma, const void *beta, double epsilon,
          std::int64_t n);
void norm_gradient(sg_dtype type, sg_norm_kind kind, void *dx, void *products, const void *dy, const void *x,
                   const void *gamma, double epsilon, std::int64_t n);
void dot(sg_dtype type, void *sum, const void *x, const void *y, std::int64_t n);
float sum(const float *x, std::int64_t n);
void divide(float *x, float divisor, std::int64_t n);

}  // namespace sg::cpu::SG_CPU_LEVEL
