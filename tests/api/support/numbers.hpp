// SPDX-License-Identifier: Apache-2.0
// Elements of every type, read and written as complex numbers of extended precision.
#pragma once

#include <streamgemm/types.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <vector>

namespace sg_test {

using number = std::complex<long double>;

// A binary format of 16 bits with `fraction` explicit significand bits and the least exponent `least`.
struct small_format {
  int fraction, least;
};
inline constexpr small_format f16_format{10, -14}, bf16_format{7, -126};

inline long double decode_by_definition(small_format f, std::uint16_t bits) {
  const int exponent_bits = 15 - f.fraction, top = (1 << exponent_bits) - 1;
  const int exponent = (bits >> f.fraction) & top, fraction = bits & ((1 << f.fraction) - 1);
  const long double sign = bits & 0x8000 ? -1.0L : 1.0L;
  if (exponent == top) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<long double>(fraction), f.least - f.fraction);
  return sign * std::ldexp(static_cast<long double>(fraction + (1 << f.fraction)), exponent - 1 + f.least - f.fraction);
}

// All numbers of the two formats: most tests decode many.
inline long double decode(small_format f, std::uint16_t bits) {
  static const auto all_of = [](small_format of) {
    std::vector<long double> all(0x10000);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = decode_by_definition(of, static_cast<std::uint16_t>(i));
    return all;
  };
  static const std::vector<long double> f16 = all_of(f16_format), bf16 = all_of(bf16_format);
  return (f.fraction == f16_format.fraction ? f16 : bf16)[bits];
}

// Rounds to nearest, ties to even; the integer q carries into the exponent when rounding reaches the next binade.
inline std::uint16_t encode(small_format f, long double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const int infinity = 0x7fff & ~((1 << f.fraction) - 1);
  if (std::isnan(value)) return static_cast<std::uint16_t>(infinity | 1 << (f.fraction - 1));
  const long double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return static_cast<std::uint16_t>(sign | infinity);
  const int exponent = std::max(std::ilogb(magnitude), f.least);
  const auto q = static_cast<std::int64_t>(std::nearbyint(std::ldexp(magnitude, f.fraction - exponent)));
  const std::int64_t bits = (static_cast<std::int64_t>(exponent - f.least) << f.fraction) + q;
  return static_cast<std::uint16_t>(sign | std::min<std::int64_t>(bits, infinity));
}

// The 8-bit formats. e5m2 is the upper half of f16; e4m3 has more finite numbers in place of infinity and most NaNs.
inline long double decode_f8(sg_dtype type, std::uint8_t bits) {
  if (type == SG_DTYPE_F8_E5M2) return decode(f16_format, static_cast<std::uint16_t>(bits << 8));
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  if ((bits & 0x7f) == 0x7f) return NAN;
  const long double magnitude = std::ldexp(fraction + (exponent ? 8.0L : 0.0L), (exponent ? exponent : 1) - 10);
  return bits & 0x80 ? -magnitude : magnitude;
}
// For numbers in range; rounds to nearest, ties to even.
inline std::uint8_t encode_f8(sg_dtype type, long double value) {
  if (std::isnan(value)) return 0x7f;
  const int fraction = type == SG_DTYPE_F8_E4M3 ? 3 : 2, least = type == SG_DTYPE_F8_E4M3 ? -6 : -14;
  const int sign = std::signbit(value) ? 0x80 : 0;
  const long double magnitude = std::fabs(value);
  const int exponent = magnitude == 0 ? least : std::max(std::ilogb(magnitude), least);
  const int q = static_cast<int>(std::nearbyint(std::ldexp(magnitude, fraction - exponent)));
  return static_cast<std::uint8_t>(sign | (((exponent - least) << fraction) + q));
}

// The type of C that goes with operands of a type, the widest if there are several.
inline sg_dtype natural_result(sg_dtype in) {
  if (in == SG_DTYPE_I8) return SG_DTYPE_I32;
  return in == SG_DTYPE_F8_E4M3 || in == SG_DTYPE_F8_E5M2 ? SG_DTYPE_F32 : in;
}

inline bool is_complex(sg_dtype type) { return type == SG_DTYPE_C64 || type == SG_DTYPE_C128; }

template <class T>
T read_as(const void *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <class T>
void write_as(void *at, T value) {
  std::memcpy(at, &value, sizeof value);
}

inline number load(sg_dtype type, const void *at) {
  const auto *bytes = static_cast<const std::uint8_t *>(at);
  switch (type) {
    case SG_DTYPE_F64: return read_as<double>(at);
    case SG_DTYPE_F32: return read_as<float>(at);
    case SG_DTYPE_C64: return {read_as<float>(at), read_as<float>(bytes + 4)};
    case SG_DTYPE_C128: return {read_as<double>(at), read_as<double>(bytes + 8)};
    case SG_DTYPE_F16: return decode(f16_format, read_as<std::uint16_t>(at));
    case SG_DTYPE_BF16: return decode(bf16_format, read_as<std::uint16_t>(at));
    case SG_DTYPE_I8: return read_as<std::int8_t>(at);
    case SG_DTYPE_I32: return read_as<std::int32_t>(at);
    case SG_DTYPE_F8_E4M3:
    case SG_DTYPE_F8_E5M2: return decode_f8(type, read_as<std::uint8_t>(at));
  }
  return NAN;
}

inline void store(sg_dtype type, void *at, number value) {
  auto *bytes = static_cast<std::uint8_t *>(at);
  switch (type) {
    case SG_DTYPE_F64: return write_as(at, static_cast<double>(value.real()));
    case SG_DTYPE_F32: return write_as(at, static_cast<float>(value.real()));
    case SG_DTYPE_C64:
      write_as(at, static_cast<float>(value.real()));
      return write_as(bytes + 4, static_cast<float>(value.imag()));
    case SG_DTYPE_C128:
      write_as(at, static_cast<double>(value.real()));
      return write_as(bytes + 8, static_cast<double>(value.imag()));
    case SG_DTYPE_F16: return write_as(at, encode(f16_format, value.real()));
    case SG_DTYPE_BF16: return write_as(at, encode(bf16_format, value.real()));
    case SG_DTYPE_I8: return write_as(at, static_cast<std::int8_t>(value.real()));
    case SG_DTYPE_I32: return write_as(at, static_cast<std::int32_t>(value.real()));
    case SG_DTYPE_F8_E4M3:
    case SG_DTYPE_F8_E5M2: return write_as(at, encode_f8(type, value.real()));
  }
}

// SplitMix64: the same numbers on every machine.
class random_source {
 public:
  explicit random_source(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int below(int bound) { return static_cast<int>(next() % static_cast<std::uint64_t>(bound)); }
  // In [-1, 1), never 0.
  double real() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-52 - 1.0; }
  // A number of the type, never zero for floating types.
  number of(sg_dtype type) {
    if (type == SG_DTYPE_I8) return below(256) - 128;
    if (type == SG_DTYPE_I32) return below(2000001) - 1000000;
    if (is_complex(type)) return {real(), real()};
    return real();
  }

 private:
  std::uint64_t state_;
};

}  // namespace sg_test
