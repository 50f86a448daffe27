// SPDX-License-Identifier: Apache-2.0
// Functions of the elements of contiguous arrays; compiled once for each instruction set, so nothing here is shared.
#pragma once

#include <streamgemm/types.h>

#include <cstdint>

#include "simd_exponential.hpp"

// Before a loop: no iteration reads what another writes. Clang tests that where the loop runs.
#ifdef __clang__
#define SG_INDEPENDENT
#else
#define SG_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace sg::cpu::SG_CPU_LEVEL {
namespace {

template <class Body>
void with_real(sg_dtype type, Body body) {
  return type == SG_DTYPE_F64 ? body(double{}) : body(float{});
}

// e^x for x <= 0: 0 where it is subnormal. Keeps a NaN.
SG_IN_LOOP float decay(float x) { return x < -87.0f ? 0.0f : exponential(x); }
SG_IN_LOOP double decay(double x) { return x < -708.0 ? 0.0 : exponential(x); }

// y[i] = function(x[i], i). y may be x: no iteration reads what another writes.
template <class R, class Function>
void apply(R *y, const R *x, std::int64_t n, Function function) {
  SG_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = function(x[i], i);
}

// y[i] = function(a[i], b[i]), as in apply.
template <class R, class Function>
void apply_to_two(R *y, const R *a, const R *b, std::int64_t n, Function function) {
  apply(y, a, n, [=](R v, std::int64_t i) { return function(v, b[i]); });
}

}  // namespace
}  // namespace sg::cpu::SG_CPU_LEVEL
