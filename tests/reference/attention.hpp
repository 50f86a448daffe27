// SPDX-License-Identifier: Apache-2.0
// An attention by definition, in extended precision.
#pragma once

#include <cstdint>
#include <vector>

#include "numbers.hpp"

namespace sg_reference {

struct attention_shape {
  std::int64_t batch, heads, kv_heads, queries, keys, width, value_width;
  bool causal = false;
  std::int64_t mask_offset = 0;
};

struct attention_values {
  std::vector<real> q, k, v;  // in the order of batches, heads, tokens, elements
};

// The sum of dO * O.
real loss_of(const attention_shape &s, const attention_values &values, const std::vector<real> &dout, real scale);

}  // namespace sg_reference
