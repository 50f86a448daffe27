// SPDX-License-Identifier: Apache-2.0
// Conversions of the formats of 16 and 8 bits, from and to f32, on the host: branch-free, so that compilers vectorize
// them. Rounding is to nearest, ties to even; NaN stays NaN. (A GPU has instructions for them.)
//
// Always inlined: loops are compiled for several instruction sets, and the linker would keep one copy of a function.
#pragma once

#include <cstdint>

namespace sg {
inline namespace common {

[[gnu::always_inline]] constexpr float float_of(std::uint32_t bits) noexcept { return __builtin_bit_cast(float, bits); }
[[gnu::always_inline]] constexpr std::uint32_t bits_of(float value) noexcept {
  return __builtin_bit_cast(std::uint32_t, value);
}

// binary16's exponent and fraction, moved to binary32's positions, give a value too small by 2^112, subnormals
// included.
[[gnu::always_inline]] constexpr float f32_of_f16(std::uint16_t half) noexcept {
  const std::uint32_t magnitude = half & 0x7fffu;
  const float finite = float_of(magnitude << 13) * 0x1p112f;
  const std::uint32_t special = (magnitude << 13) | 0x7f800000u;
  const std::uint32_t bits = magnitude >= 0x7c00u ? special : bits_of(finite);
  return float_of(bits | (half & 0x8000u) << 16);
}

[[gnu::always_inline]] constexpr float f32_of_bf16(std::uint16_t half) noexcept {
  return float_of(static_cast<std::uint32_t>(half) << 16);
}

// Normal results: half of the last bit, less one for an even last bit, is added before truncation; a carry raises the
// exponent, up to infinity. Subnormal results: adding 0.5f aligns their last bit with that of the sum, which the
// processor rounds.
[[gnu::always_inline]] constexpr std::uint16_t f16_of_f32(float value) noexcept {
  const std::uint32_t sign = (bits_of(value) >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits_of(value) & 0x7fffffffu;
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const std::uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
  const std::uint32_t special = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : 0x7c00u;
  std::uint32_t bits = magnitude < (113u << 23) ? subnormal : normal;
  bits = magnitude >= (143u << 23) ? special : bits;
  return static_cast<std::uint16_t>(bits | sign);
}

[[gnu::always_inline]] constexpr std::uint16_t bf16_of_f32(float value) noexcept {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  const std::uint32_t nan = bits | 0x400000u;
  return static_cast<std::uint16_t>(((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded) >> 16);
}

// Rounded to odd: truncated, with the last bit set if bits were lost. That leaves the one rounding to a shorter format.
[[gnu::always_inline]] constexpr float odd_f32_of_f64(double value) noexcept {
  const float near = static_cast<float>(value);
  const double back = static_cast<double>(near);
  const std::uint32_t beyond = __builtin_fabs(back) > __builtin_fabs(value) ? 1 : 0, inexact = back != value ? 1 : 0;
  return float_of((bits_of(near) - beyond) | inexact);
}

// A normal number's exponent and fraction move to binary32's positions; a subnormal one is an integer multiple of its
// format's least value. (Not by way of a binary32 subnormal, as above, because many processors multiply those slowly.)
template <int exponent, int fraction, std::uint32_t first_nan, std::uint32_t infinity>
[[gnu::always_inline]] constexpr float f32_of_f8(std::uint8_t byte) noexcept {
  constexpr int bias = (1 << (exponent - 1)) - 1, shift = 23 - fraction;
  constexpr float least = float_of(std::uint32_t(127 + 1 - bias - fraction) << 23);
  const std::uint32_t magnitude = byte & 0x7fu;
  const std::uint32_t normal = (magnitude << shift) + (std::uint32_t(127 - bias) << 23);
  const std::uint32_t subnormal = bits_of(static_cast<float>(static_cast<std::int32_t>(magnitude)) * least);
  std::uint32_t bits = magnitude < (1u << fraction) ? subnormal : normal;
  bits = magnitude == infinity ? 0x7f800000u : bits;
  bits = magnitude >= first_nan ? 0x7fc00000u : bits;
  return float_of(bits | static_cast<std::uint32_t>(byte & 0x80u) << 24);
}
// e4m3 has no infinity, one NaN of each sign and instead values up to 448.
[[gnu::always_inline]] constexpr float f32_of_e4m3(std::uint8_t byte) noexcept {
  constexpr std::uint32_t no_infinity = 0xffffffffu;
  return f32_of_f8<4, 3, 0x7f, no_infinity>(byte);
}
[[gnu::always_inline]] constexpr float f32_of_e5m2(std::uint8_t byte) noexcept {
  return f32_of_f8<5, 2, 0x7d, 0x7c>(byte);
}

}  // namespace common
}  // namespace sg
