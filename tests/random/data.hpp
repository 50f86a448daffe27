// SPDX-License-Identifier: Apache-2.0
// Operand values: one of 16 for each component, by the component's place in memory, so that a small program can
// reproduce them.
#pragma once

#include <array>

#include "case.hpp"
#include "support/numbers.hpp"

namespace sg_test::random_tests {

inline bool is_complex_type(sg_dtype type) { return type == SG_DTYPE_C64 || type == SG_DTYPE_C128; }

// The type of one component.
inline sg_dtype component_of(sg_dtype type) {
  return type == SG_DTYPE_C64 ? SG_DTYPE_F32 : type == SG_DTYPE_C128 ? SG_DTYPE_F64 : type;
}

// Index into the 16 values for component `index`.
inline std::size_t choice_of(std::uint32_t seed, std::int64_t index) {
  return ((static_cast<std::uint32_t>(index) ^ seed) * 2654435761u + (seed >> 7)) >> 28;
}

// The 16 values of operand `which` (0: A, 1: B, 2: C, 3: the bias).
inline std::array<long double, 16> table_of(const gemm_case &p, sg_dtype type, int which) {
  static constexpr int small[16] = {1, -2, 3, -4, 2, -1, 4, -3, 1, 2, -1, 3, -3, 4, -2, 0};
  std::array<long double, 16> table;
  random_source random(p.seed + static_cast<std::uint32_t>(which));
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = p.data == values::integers ? small[i] : random.of(component_of(type)).real();
    alignas(16) std::uint8_t bytes[16];
    store(component_of(type), bytes, table[i]);
    table[i] = load(component_of(type), bytes).real();
  }
  if (p.data == values::reals && type == SG_DTYPE_I8) table[3] = -128, table[7] = 127;
  return table;
}

inline std::uint32_t seed_of(const gemm_case &p, int which) { return p.seed * 31 + static_cast<std::uint32_t>(which); }

}  // namespace sg_test::random_tests
