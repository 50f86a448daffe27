// SPDX-License-Identifier: Apache-2.0
#include "matrix.hpp"

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
  }
  return {};
}

matrix convert(const matrix &from, sg_dtype dtype) {
  const bool source = from.dtype == SG_DTYPE_F32 || from.dtype == SG_DTYPE_F64 || from.dtype == SG_DTYPE_F16;
  const bool target = dtype == SG_DTYPE_F32 || dtype == SG_DTYPE_F64 || dtype == SG_DTYPE_BF16;
  if (from.dtype == dtype) return from;
  if (!source || !target)
    throw failure(exit_code::usage, std::string("cannot convert ") + sg_dtype_name(from.dtype) + " to " +
                                        sg_dtype_name(dtype) + " (f16, f32, f64 become bf16, f32, f64)");
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
    }
  return result;
}

}  // namespace sg::cli
