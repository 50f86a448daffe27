// SPDX-License-Identifier: Apache-2.0
// The element types as the tests see them: written from, and read as, long double. Rounding follows the definition of
// each format, without any code of the library.
#pragma once

#include <streamgemm/types.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace sg_reference {

using real = long double;
using number = std::complex<real>;

inline std::int64_t size_of(sg_dtype type) {
  switch (type) {
    case SG_DTYPE_C128: return 16;
    case SG_DTYPE_F64:
    case SG_DTYPE_C64: return 8;
    case SG_DTYPE_F32:
    case SG_DTYPE_I32: return 4;
    case SG_DTYPE_F16:
    case SG_DTYPE_BF16: return 2;
    case SG_DTYPE_I8:
    case SG_DTYPE_F8_E4M3:
    case SG_DTYPE_F8_E5M2: return 1;
  }
  return 0;
}

inline bool is_complex(sg_dtype type) { return type == SG_DTYPE_C64 || type == SG_DTYPE_C128; }
inline bool is_integer(sg_dtype type) { return type == SG_DTYPE_I8 || type == SG_DTYPE_I32; }

// A binary format: bits of the significand (the hidden one included), least normal exponent, largest exponent.
struct format {
  int precision, least, largest;
};
inline constexpr format f16_format = {11, -14, 15};
inline constexpr format bf16_format = {8, -126, 127};

// To the nearest integer, ties to even, for numbers with fewer integer bits than `real` has in total. std::nearbyint()
// also preserves the floating-point exceptions and takes ten times as long.
inline real nearest(real value) {
  static const real large = std::ldexp(real{1}, std::numeric_limits<real>::digits - 1);
  const real without_fraction = std::copysign(large, value);
  return std::copysign(value + without_fraction - without_fraction, value);
}

// To nearest, ties to even; beyond the largest: infinity.
inline real round_to(const format &f, real value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), f.least);
  const real unit = std::ldexp(real{1}, exponent - f.precision + 1);
  const real rounded = nearest(value / unit) * unit;
  const real largest = std::ldexp(real{2} - std::ldexp(real{1}, 1 - f.precision), f.largest);
  return std::abs(rounded) > largest ? std::copysign(std::numeric_limits<real>::infinity(), value) : rounded;
}

inline std::uint16_t encode_16(const format &f, real value) {
  const int fraction_bits = f.precision - 1;
  const std::uint32_t sign = std::signbit(value) ? 0x8000u : 0;
  const std::uint32_t all_ones = ((1u << (15 - fraction_bits)) - 1) << fraction_bits;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | all_ones | 1u << (fraction_bits - 1));
  const real magnitude = std::abs(round_to(f, value));
  if (std::isinf(magnitude)) return static_cast<std::uint16_t>(sign | all_ones);
  if (magnitude == 0) return static_cast<std::uint16_t>(sign);
  const int exponent = std::max(std::ilogb(magnitude), f.least);
  const auto significand = static_cast<std::uint32_t>(std::ldexp(magnitude, fraction_bits - exponent));
  const bool normal = significand >> fraction_bits != 0;
  const std::uint32_t biased = normal ? static_cast<std::uint32_t>(exponent - f.least + 1) : 0;
  return static_cast<std::uint16_t>(sign | biased << fraction_bits | (significand & ((1u << fraction_bits) - 1)));
}

inline real decode_16_by_definition(const format &f, std::uint16_t bits) {
  const int fraction_bits = f.precision - 1;
  const std::uint32_t fraction = bits & ((1u << fraction_bits) - 1);
  const int biased = (bits & 0x7fff) >> fraction_bits;
  real magnitude;
  if (biased == (1 << (15 - fraction_bits)) - 1)
    magnitude = fraction != 0 ? std::numeric_limits<real>::quiet_NaN() : std::numeric_limits<real>::infinity();
  else if (biased == 0)
    magnitude = std::ldexp(real(fraction), f.least - fraction_bits);
  else
    magnitude = std::ldexp(real(fraction | 1u << fraction_bits), biased - 1 + f.least - fraction_bits);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// All numbers of the two formats: most tests decode many.
inline real decode_16(const format &f, std::uint16_t bits) {
  static const auto all_of = [](const format &of) {
    std::vector<real> all(0x10000);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = decode_16_by_definition(of, static_cast<std::uint16_t>(i));
    return all;
  };
  static const std::vector<real> f16 = all_of(f16_format), bf16 = all_of(bf16_format);
  return (f.precision == f16_format.precision ? f16 : bf16)[bits];
}

// The formats of 8 bits: their bits of fraction, and the bias of the exponent.
inline real decode_8(sg_dtype type, std::uint8_t bits) {
  const bool e4m3 = type == SG_DTYPE_F8_E4M3;
  const int fraction_bits = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15, magnitude = bits & 0x7f;
  const int biased = magnitude >> fraction_bits, fraction = magnitude & ((1 << fraction_bits) - 1);
  real value = biased == 0 ? std::ldexp(real(fraction), 1 - bias - fraction_bits)
                           : std::ldexp(real(fraction + (1 << fraction_bits)), biased - bias - fraction_bits);
  if (e4m3 && magnitude == 0x7f) value = std::numeric_limits<real>::quiet_NaN();
  if (!e4m3 && magnitude == 0x7c) value = std::numeric_limits<real>::infinity();
  if (!e4m3 && magnitude > 0x7c) value = std::numeric_limits<real>::quiet_NaN();
  return (bits & 0x80) != 0 ? -value : value;
}

// To nearest, ties to even, for numbers in range. Infinity becomes NaN in a format without it.
inline std::uint8_t encode_8(sg_dtype type, real value) {
  const bool e4m3 = type == SG_DTYPE_F8_E4M3;
  const int fraction_bits = e4m3 ? 3 : 2, least = e4m3 ? -6 : -14, sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return static_cast<std::uint8_t>(sign | 0x7f);
  if (std::isinf(value)) return static_cast<std::uint8_t>(sign | (e4m3 ? 0x7f : 0x7c));
  const real magnitude = std::abs(value);
  const int exponent = magnitude == 0 ? least : std::max(std::ilogb(magnitude), least);
  const auto units = static_cast<int>(nearest(std::ldexp(magnitude, fraction_bits - exponent)));
  return static_cast<std::uint8_t>(sign | (((exponent - least) << fraction_bits) + units));
}

inline void store(sg_dtype type, void *to, number value) {
  const auto put = [to](auto x) { std::memcpy(to, &x, sizeof x); };
  switch (type) {
    case SG_DTYPE_F64: return put(static_cast<double>(value.real()));
    case SG_DTYPE_F32: return put(static_cast<float>(value.real()));
    case SG_DTYPE_C64: return put(std::complex<float>(value));
    case SG_DTYPE_C128: return put(std::complex<double>(value));
    case SG_DTYPE_F16: return put(encode_16(f16_format, value.real()));
    case SG_DTYPE_BF16: return put(encode_16(bf16_format, value.real()));
    case SG_DTYPE_I8: return put(static_cast<std::int8_t>(value.real()));
    case SG_DTYPE_I32: return put(static_cast<std::int32_t>(value.real()));
    case SG_DTYPE_F8_E4M3:
    case SG_DTYPE_F8_E5M2: return put(encode_8(type, value.real()));
  }
}

inline number load(sg_dtype type, const void *from) {
  const auto get = [from]<class T>(T x) {
    std::memcpy(&x, from, sizeof x);
    return x;
  };
  switch (type) {
    case SG_DTYPE_F64: return get(double{});
    case SG_DTYPE_F32: return get(float{});
    case SG_DTYPE_C64: return number(get(std::complex<float>{}));
    case SG_DTYPE_C128: return number(get(std::complex<double>{}));
    case SG_DTYPE_F16: return decode_16(f16_format, get(std::uint16_t{}));
    case SG_DTYPE_BF16: return decode_16(bf16_format, get(std::uint16_t{}));
    case SG_DTYPE_I8: return real(get(std::int8_t{}));
    case SG_DTYPE_I32: return real(get(std::int32_t{}));
    case SG_DTYPE_F8_E4M3:
    case SG_DTYPE_F8_E5M2: return decode_8(type, get(std::uint8_t{}));
  }
  return 0;
}

// The number of the type that is nearest to a real one; of a complex type, that of a component.
inline real rounded(sg_dtype type, real value) {
  if (is_complex(type)) type = type == SG_DTYPE_C64 ? SG_DTYPE_F32 : SG_DTYPE_F64;
  alignas(16) std::uint8_t bytes[16];
  store(type, bytes, value);
  return load(type, bytes).real();
}

// The unit roundoff of a real type.
inline real unit_of(sg_dtype type) {
  switch (type) {
    case SG_DTYPE_F64: return std::ldexp(real{1}, -53);
    case SG_DTYPE_F32: return std::ldexp(real{1}, -24);
    case SG_DTYPE_F16: return std::ldexp(real{1}, -11);
    default: return std::ldexp(real{1}, -8);
  }
}

}  // namespace sg_reference
