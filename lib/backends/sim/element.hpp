// SPDX-License-Identifier: Apache-2.0
// The element types of the simulated chip: every number is converted to doubles, exactly, and stored with one rounding
// (to nearest, ties to even). `sum` is the type of the arithmetic that the public headers name: f32 for f32 and shorter
// types. Sums modulo 2^32 are exact in doubles.
#pragma once

#include <streamgemm/backend.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace sg::sim {

// A binary format of 16 bits with `exponent` and `fraction` bits below its sign.
template <int exponent, int fraction>
struct half_format {
  static_assert(exponent + fraction == 15);
  static constexpr int bias = (1 << (exponent - 1)) - 1;
  static constexpr int least = 1 - bias;  // exponent of the smallest normal number, and of all subnormals
  static constexpr std::uint16_t infinity = ((1 << exponent) - 1) << fraction;

  static double decode(std::uint16_t bits) noexcept {
    const std::uint64_t sign = std::uint64_t(bits & 0x8000) << 48;
    const std::uint64_t e = (bits >> fraction) & ((1 << exponent) - 1);
    const std::uint64_t f = bits & ((1 << fraction) - 1);
    if (e == 0) {
      const double magnitude = std::ldexp(double(f), least - fraction);
      return sign ? -magnitude : magnitude;
    }
    const std::uint64_t wide = e == (1 << exponent) - 1 ? 2047 : e - bias + 1023;
    return std::bit_cast<double>(sign | wide << 52 | f << (52 - fraction));
  }

  // A magnitude is q * 2^(e - fraction), with an integer q up to 2^(fraction + 1); its bits are then ((e - least) <<
  // fraction) + q, whether it is subnormal, normal, or carried into the next power of two or infinity.
  static std::uint16_t encode(double value) noexcept {
    const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    if (std::isnan(value)) return sign | infinity | 1 << (fraction - 1);
    const double magnitude = std::fabs(value);
    if (std::isinf(value)) return sign | infinity;
    const int e = magnitude == 0 ? least : std::max(std::ilogb(magnitude), least);
    if (e > bias) return sign | infinity;
    const auto q = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, fraction - e)));
    return sign | static_cast<std::uint16_t>((static_cast<std::uint32_t>(e - least) << fraction) + q);
  }
};

// The two formats of 8 bits, which are only read. e5m2 is the upper half of f16; e4m3 has no infinity, one NaN of each
// sign and instead values up to 448.
struct f8_e5m2 {
  static double decode(std::uint8_t bits) noexcept { return half_format<5, 10>::decode(std::uint16_t(bits << 8)); }
};
struct f8_e4m3 {
  static double decode(std::uint8_t bits) noexcept {
    const int e = bits >> 3 & 15, f = bits & 7;
    const double magnitude = (bits & 0x7f) == 0x7f ? std::numeric_limits<double>::quiet_NaN()
                             : e == 0              ? std::ldexp(f, -9)
                                                   : std::ldexp(8 + f, e - 10);
    return std::copysign(magnitude, bits & 0x80 ? -1.0 : 1.0);
  }
};

using f16 = half_format<5, 10>;
using bf16 = half_format<8, 7>;

// stored: the type in memory, one for each plane; planes: 1, or 2 for complex types (real part first).
template <sg_dtype type>
struct element;

template <class T, int count>
struct plain_element {
  using stored = T;
  using sum = std::conditional_t<std::is_same_v<T, float>, float, double>;
  static constexpr int planes = count;
  static double load(T value) noexcept { return static_cast<double>(value); }
  static T store(double value) noexcept { return static_cast<T>(value); }
};

template <class Format>
struct half_element {
  using stored = std::uint16_t;
  using sum = float;
  static constexpr int planes = 1;
  static double load(std::uint16_t bits) noexcept { return Format::decode(bits); }
  static std::uint16_t store(double value) noexcept { return Format::encode(value); }
};

template <class Format>
struct read_only_element {
  using stored = std::uint8_t;
  using sum = float;
  static constexpr int planes = 1;
  static double load(std::uint8_t bits) noexcept { return Format::decode(bits); }
};

template <>
struct element<SG_DTYPE_F64> : plain_element<double, 1> {};
template <>
struct element<SG_DTYPE_F32> : plain_element<float, 1> {};
template <>
struct element<SG_DTYPE_C64> : plain_element<float, 2> {};
template <>
struct element<SG_DTYPE_C128> : plain_element<double, 2> {};
template <>
struct element<SG_DTYPE_F16> : half_element<f16> {};
template <>
struct element<SG_DTYPE_BF16> : half_element<bf16> {};
template <>
struct element<SG_DTYPE_I8> : plain_element<std::int8_t, 1> {};
template <>
struct element<SG_DTYPE_F8_E4M3> : read_only_element<f8_e4m3> {};
template <>
struct element<SG_DTYPE_F8_E5M2> : read_only_element<f8_e5m2> {};

template <>
struct element<SG_DTYPE_I32> {
  using stored = std::int32_t;
  using sum = double;
  static constexpr int planes = 1;
  static double load(std::int32_t value) noexcept { return value; }
  // The low 32 bits, as in 32-bit integer sums; exact for values below 2^53.
  static std::int32_t store(double value) noexcept {
    constexpr double period = 4294967296.0;
    const double low = value - period * std::floor(value / period);
    return low >= 0 && low < period ? static_cast<std::int32_t>(static_cast<std::uint32_t>(low)) : 0;
  }
};

// value(0) + value(1) + ..., added pairwise.
template <class Real, class Value>
Real pairwise_sum(std::int64_t first, std::int64_t count, Value &&value) {
  if (count > 16) {
    const std::int64_t half = count / 2;
    return pairwise_sum<Real>(first, half, value) + pairwise_sum<Real>(first + half, count - half, value);
  }
  Real sum = 0;
  for (std::int64_t i = first; i < first + count; ++i) sum += value(i);
  return sum;
}

// Calls body.template operator()<type>() for a type given as a value.
template <class Body>
auto with_type(sg_dtype type, Body &&body) {
  switch (type) {
    case SG_DTYPE_F64: return body.template operator()<SG_DTYPE_F64>();
    case SG_DTYPE_F32: return body.template operator()<SG_DTYPE_F32>();
    case SG_DTYPE_C64: return body.template operator()<SG_DTYPE_C64>();
    case SG_DTYPE_C128: return body.template operator()<SG_DTYPE_C128>();
    case SG_DTYPE_F16: return body.template operator()<SG_DTYPE_F16>();
    case SG_DTYPE_BF16: return body.template operator()<SG_DTYPE_BF16>();
    case SG_DTYPE_I8: return body.template operator()<SG_DTYPE_I8>();
    case SG_DTYPE_I32: return body.template operator()<SG_DTYPE_I32>();
    case SG_DTYPE_F8_E4M3: return body.template operator()<SG_DTYPE_F8_E4M3>();
    case SG_DTYPE_F8_E5M2: return body.template operator()<SG_DTYPE_F8_E5M2>();
  }
  return body.template operator()<SG_DTYPE_F32>();
}

inline std::int64_t bytes_of(sg_dtype type) {
  return with_type(type,
                   []<sg_dtype t>() { return std::int64_t(sizeof(typename element<t>::stored)) * element<t>::planes; });
}

}  // namespace sg::sim
