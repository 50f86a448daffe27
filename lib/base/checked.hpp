// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic that reports overflow instead of wrapping.
#pragma once

#include <cstdint>

#include "base/error.hpp"

namespace sg {

inline std::int64_t checked_mul(std::int64_t a, std::int64_t b, const char *what) {
  std::int64_t result;
  if (__builtin_mul_overflow(a, b, &result))
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s: %lld * %lld does not fit 64 bits", what, static_cast<long long>(a),
                static_cast<long long>(b));
  return result;
}

inline std::int64_t checked_add(std::int64_t a, std::int64_t b, const char *what) {
  std::int64_t result;
  if (__builtin_add_overflow(a, b, &result))
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s: %lld + %lld does not fit 64 bits", what, static_cast<long long>(a),
                static_cast<long long>(b));
  return result;
}

// The bytes of a stride in elements. A single column or item may have any stride, since it leads nowhere: one that does
// not fit is `width`.
inline std::int64_t step_bytes(std::int64_t stride, std::int64_t element, std::int64_t width) noexcept {
  std::int64_t result;
  return __builtin_mul_overflow(stride, element, &result) ? width : result;
}

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) noexcept { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) noexcept { return ceil_div(a, b) * b; }

}  // namespace sg
