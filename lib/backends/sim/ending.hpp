// SPDX-License-Identifier: Apache-2.0
// Conversion of a sum to an element: scalars, bias, activation, and the one rounding.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "element.hpp"

namespace sg::sim {

// A scalar times a value of C's type; integers modulo 2^32, because a product of two of them may exceed a double.
template <sg_dtype out>
typename element<out>::sum scaled(typename element<out>::sum factor, typename element<out>::sum value) {
  if constexpr (out == SG_DTYPE_I32) {
    using traits = element<out>;
    const auto low =
        static_cast<std::uint32_t>(traits::store(factor)) * static_cast<std::uint32_t>(traits::store(value));
    return traits::load(static_cast<std::int32_t>(low));
  }
  return factor * value;
}

// Bias and activation of a sum before it is stored.
template <sg_dtype out>
struct ending {
  using traits = element<out>;
  const std::byte *bias;
  bool per_row;
  sg_activation activation;

  // Converts `plane` of the sum for C's element (i, j).
  typename traits::stored store(double sum, std::int64_t i, std::int64_t j, int plane) const {
    if (bias) {
      const auto *values = reinterpret_cast<const typename traits::stored *>(bias);
      sum += traits::load(values[(per_row ? i : j) * traits::planes + plane]);
    }
    // Integers wrap before their sign is used.
    if constexpr (out == SG_DTYPE_I32) sum = traits::load(traits::store(sum));
    if (activation == SG_ACTIVATION_RELU && sum < 0) sum = 0;
    if (activation == SG_ACTIVATION_GELU) {
      constexpr double root_2_over_pi = 0.7978845608028654;
      const double value = sum / (1 + std::exp(-2 * root_2_over_pi * (sum + 0.044715 * sum * sum * sum)));
      sum = sum == -INFINITY ? 0 : value;
    }
    return traits::store(sum);
  }
};

}  // namespace sg::sim
