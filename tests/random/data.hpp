// SPDX-License-Identifier: Apache-2.0
// Operand values: one of 16 for each component, by the component's place in memory, so that a small program can
// reproduce them.
#pragma once

#include <array>
#include <cmath>
#include <vector>

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

struct element_value {
  std::int64_t at;  // in elements from the start of the operand's memory
  long double value;
};

// A bias that cancels the product in one element of each row or column: any value but 0 there is an early rounding.
inline std::vector<element_value> cancelling_bias(const gemm_case &p) {
  const operand_case &b_case = p.b_is_a ? p.a : p.b;
  const auto a = extent_of(p.a, p.rows_a(), p.cols_a(), p.batch),
             b = extent_of(b_case, p.rows_b(), p.cols_b(), p.batch), bias = extent_of_bias(p);
  const int which_b = p.b_is_a ? 0 : 1;
  const auto of_a = table_of(p, p.in, 0), of_b = table_of(p, p.in, which_b);
  const auto value = [&](const auto &table, int which, const extent_of_operand &e, sg_transpose op, std::int64_t item,
                         std::int64_t i, std::int64_t j) {
    return table[choice_of(seed_of(p, which), op == SG_TRANSPOSE_N ? e.at(item, i, j) : e.at(item, j, i))];
  };
  std::vector<element_value> made;
  const bool per_row = p.bias_shape == SG_BIAS_PER_ROW;
  const std::int64_t others = per_row ? p.n : p.m;
  for (std::int64_t item = 0; others > 0 && item < (bias.form == item_form::shared ? 1 : p.batch); ++item)
    for (std::int64_t x = 0; x < bias.rows; ++x) {
      const std::int64_t other = p.seed % others, i = per_row ? x : other, j = per_row ? other : x;
      long double sum = 0;
      for (std::int64_t l = 0; l < p.k; ++l)
        sum += value(of_a, 0, a, p.op_a, item, i, l) * value(of_b, which_b, b, p.op_b, item, l, j);
      alignas(16) std::uint8_t bytes[16] = {};
      store(p.out, bytes, -sum * static_cast<long double>(p.alpha.re));
      const long double rounded = load(p.out, bytes).real();
      made.push_back({bias.at(item, x, 0), std::isfinite(rounded) ? rounded : 0});
    }
  return made;
}

}  // namespace sg_test::random_tests
