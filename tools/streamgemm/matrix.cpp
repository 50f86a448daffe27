// SPDX-License-Identifier: Apache-2.0
#include "matrix.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <string>

#include "outcome.hpp"

namespace sg::cli {

namespace {

template <class T>
T load(const std::byte *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

double from_f16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double magnitude;
  if (exponent == 31)
    magnitude = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else
    magnitude = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
  return bits & 0x8000 ? -magnitude : magnitude;
}

float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// The 8-bit formats: e5m2 has IEEE 754's infinities and NaN, e4m3 a NaN at 0x7f and finite numbers below it.
struct f8_format {
  int fraction_bits, least;     // exponent of the least normal number
  std::uint8_t largest, above;  // the encoding after the largest number
};
constexpr f8_format f8_of(sg_dtype dtype) {
  return dtype == SG_DTYPE_F8_E4M3 ? f8_format{3, -6, 0x7e, 0x7f} : f8_format{2, -14, 0x7b, 0x7c};
}
bool is_f8(sg_dtype dtype) { return dtype == SG_DTYPE_F8_E4M3 || dtype == SG_DTYPE_F8_E5M2; }

double from_f8(sg_dtype dtype, std::uint8_t bits) {
  const f8_format f = f8_of(dtype);
  const int magnitude = bits & 0x7f, exponent = magnitude >> f.fraction_bits, hidden = 1 << f.fraction_bits;
  double value = std::ldexp(magnitude % hidden + (exponent ? hidden : 0),
                            f.least - f.fraction_bits + (exponent ? exponent - 1 : 0));
  if (magnitude > f.largest)
    value = magnitude == f.above && dtype == SG_DTYPE_F8_E5M2 ? std::numeric_limits<double>::infinity()
                                                              : std::numeric_limits<double>::quiet_NaN();
  return bits & 0x80 ? -value : value;
}

// A magnitude is a whole number of units of its exponent; one that rounds up to the next power of two has its bits too.
std::uint8_t to_f8(sg_dtype dtype, double value) {
  const f8_format f = f8_of(dtype);
  const int sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return static_cast<std::uint8_t>(sign | 0x7f);
  if (std::isinf(value)) return static_cast<std::uint8_t>(sign | f.above);
  const int exponent = value == 0 ? f.least : std::max(std::ilogb(value), f.least);
  if (exponent > f.least + 30) return static_cast<std::uint8_t>(sign | f.above);
  const double units = std::nearbyint(std::ldexp(std::fabs(value), f.fraction_bits - exponent));
  const int bits = ((exponent - f.least) << f.fraction_bits) + static_cast<int>(units);
  return static_cast<std::uint8_t>(sign | std::min<int>(bits, f.above));
}

}  // namespace

matrix make_matrix(sg_dtype dtype, sg_layout layout, std::int64_t rows, std::int64_t cols) {
  std::int64_t size;
  if (__builtin_mul_overflow(rows, cols, &size) || __builtin_mul_overflow(size, sg_dtype_size(dtype), &size))
    throw failure(exit_code::usage, "a matrix of " + std::to_string(rows) + " x " + std::to_string(cols) +
                                        " does not fit the address space");
  matrix result{dtype, layout, rows, cols, {}};
  try {
    result.bytes.resize(static_cast<std::size_t>(size));
  } catch (const std::exception &) {  // bad_alloc, length_error
    throw failure(exit_code::failed, "no memory for a matrix of " + std::to_string(size) + " bytes");
  }
  return result;
}

bool is_complex(sg_dtype dtype) { return dtype == SG_DTYPE_C64 || dtype == SG_DTYPE_C128; }

std::complex<double> element(const matrix &from, std::int64_t row, std::int64_t col) {
  const std::int64_t index = from.layout == SG_LAYOUT_ROW_MAJOR ? row * from.cols + col : col * from.rows + row;
  const std::byte *at = from.bytes.data() + index * sg_dtype_size(from.dtype);
  switch (from.dtype) {
    case SG_DTYPE_F64: return load<double>(at);
    case SG_DTYPE_F32: return load<float>(at);
    case SG_DTYPE_C64: return {load<float>(at), load<float>(at + 4)};
    case SG_DTYPE_C128: return {load<double>(at), load<double>(at + 8)};
    case SG_DTYPE_F16: return from_f16(load<std::uint16_t>(at));
    case SG_DTYPE_BF16: return from_bf16(load<std::uint16_t>(at));
    case SG_DTYPE_I8: return load<std::int8_t>(at);
    case SG_DTYPE_I32: return load<std::int32_t>(at);
    case SG_DTYPE_F8_E4M3:
    case SG_DTYPE_F8_E5M2: return from_f8(from.dtype, load<std::uint8_t>(at));
  }
  return {};
}

matrix convert(const matrix &from, sg_dtype dtype) {
  const bool source = from.dtype == SG_DTYPE_F32 || from.dtype == SG_DTYPE_F64 || from.dtype == SG_DTYPE_F16;
  const bool target = dtype == SG_DTYPE_F32 || dtype == SG_DTYPE_F64 || dtype == SG_DTYPE_BF16 || is_f8(dtype);
  if (from.dtype == dtype) return from;
  if (!source || !target)
    throw failure(exit_code::usage, std::string("cannot convert ") + sg_dtype_name(from.dtype) + " to " +
                                        sg_dtype_name(dtype) +
                                        " (f16, f32, f64 become bf16, f32, f64, f8_e4m3, f8_e5m2)");
  matrix result = make_matrix(dtype, from.layout, from.rows, from.cols);
  std::byte *out = result.bytes.data();
  const std::int64_t outer = from.layout == SG_LAYOUT_ROW_MAJOR ? from.rows : from.cols;
  const std::int64_t inner = from.layout == SG_LAYOUT_ROW_MAJOR ? from.cols : from.rows;
  for (std::int64_t i = 0; i < outer; ++i)
    for (std::int64_t j = 0; j < inner; ++j, out += sg_dtype_size(dtype)) {
      const bool by_row = from.layout == SG_LAYOUT_ROW_MAJOR;
      const double value = element(from, by_row ? i : j, by_row ? j : i).real();
      const auto single = static_cast<float>(value);
      const std::uint16_t half = to_bf16(single);
      if (dtype == SG_DTYPE_F64) std::memcpy(out, &value, 8);
      if (dtype == SG_DTYPE_F32) std::memcpy(out, &single, 4);
      if (dtype == SG_DTYPE_BF16) std::memcpy(out, &half, 2);
      if (is_f8(dtype)) *out = static_cast<std::byte>(to_f8(dtype, value));
    }
  return result;
}

}  // namespace sg::cli
