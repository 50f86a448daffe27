// SPDX-License-Identifier: Apache-2.0
// The element types of the simulated chip: every number is converted to doubles, exactly, and stored with one rounding
// (to nearest, ties to even). `sum` is the type of the arithmetic that the public headers name: f32 for f32 and shorter
// types. Sums modulo 2^32 are exact in doubles.
#pragma once

#include <streamgemm/backend.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "backends/common/pairwise_sum.hpp"
#include "backends/common/short_float.hpp"
#include "backends/common/types.hpp"

namespace sg::sim {

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

// The formats of 16 bits, and of 8 bits, which are only read.
template <class T>
struct short_element {
  using stored = T;
  using sum = float;
  static constexpr int planes = 1;
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
struct element<SG_DTYPE_F16> : short_element<std::uint16_t> {
  static double load(std::uint16_t bits) noexcept { return f32_of_f16(bits); }
  static std::uint16_t store(double value) noexcept { return f16_of_f32(odd_f32_of_f64(value)); }
};
template <>
struct element<SG_DTYPE_BF16> : short_element<std::uint16_t> {
  static double load(std::uint16_t bits) noexcept { return f32_of_bf16(bits); }
  static std::uint16_t store(double value) noexcept { return bf16_of_f32(odd_f32_of_f64(value)); }
};
template <>
struct element<SG_DTYPE_I8> : plain_element<std::int8_t, 1> {};
template <>
struct element<SG_DTYPE_F8_E4M3> : short_element<std::uint8_t> {
  static double load(std::uint8_t bits) noexcept { return f32_of_e4m3(bits); }
};
template <>
struct element<SG_DTYPE_F8_E5M2> : short_element<std::uint8_t> {
  static double load(std::uint8_t bits) noexcept { return f32_of_e5m2(bits); }
};

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

}  // namespace sg::sim
