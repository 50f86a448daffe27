// SPDX-License-Identifier: Apache-2.0
// The exponential function of the inner loops; compiled once for each instruction set, so nothing here is shared.
#pragma once

#include <cstdint>

#include "backends/common/short_float.hpp"

// Before a function in the body of a loop that is to be vectorized: a call would prevent that.
#define SG_IN_LOOP [[gnu::always_inline]] inline

namespace sg::cpu::SG_CPU_LEVEL {
namespace {

// By Horner's rule, the highest power first. Not a loop, which would prevent that the loop around it is vectorized.
template <class R, class... Others>
SG_IN_LOOP R polynomial(R x, R first, Others... others) {
  ((first = first * x + others), ...);
  return first;
}

// e^x, with an error of at most two units in the last place: 2^n * e^r with integer n and small r. Adding 1.5 * 2^(bits
// of the fraction) leaves n in the low bits of a sum. Infinite where e^x, and with it 2^n, would overflow.
SG_IN_LOOP float exponential(float x) {
  constexpr float magic = 12582912.0f, least = -87.0f, most = 88.0f;
  float y = x < least ? least : x;
  y = y > most ? most : y;
  const float shifted = y * 1.44269504f + magic, n = shifted - magic;
  const float r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
  const float sum = polynomial(r, 1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f);
  const float power = float_of((bits_of(shifted) << 23) + 0x3f800000u);
  return x > most ? __builtin_huge_valf() : sum * power;
}
SG_IN_LOOP double exponential(double x) {
  constexpr double magic = 6755399441055744.0, least = -708.0, most = 709.0;
  double y = x < least ? least : x;
  y = y > most ? most : y;
  const double shifted = y * 1.4426950408889634 + magic, n = shifted - magic;
  const double r = (y - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6;
  const double sum = polynomial(r, 1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                                1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0);
  const double power =
      __builtin_bit_cast(double, (__builtin_bit_cast(std::uint64_t, shifted) << 52) + 0x3ff0000000000000u);
  return x > most ? __builtin_huge_val() : sum * power;
}

}  // namespace
}  // namespace sg::cpu::SG_CPU_LEVEL
