// SPDX-License-Identifier: Apache-2.0
// The functions of layers.h and their derivatives by definition, in extended precision.
#pragma once

#include <streamgemm/types.h>

#include <cmath>
#include <utility>

#include "numbers.hpp"

namespace sg_reference {

inline real sigmoid(real x) { return 1 / (1 + std::exp(-x)); }

// GELU by tanh is x times the sigmoid of this.
inline const real twice_root_of_2_over_pi = 2 * std::sqrt(2 / std::acos(real{-1}));
inline real gelu_argument(real x) { return twice_root_of_2_over_pi * (x + 0.044715L * x * x * x); }

// The limit of the derivative of a function at minus or plus infinity.
inline real slope_at_infinity(sg_function gradient, real x) {
  return x > 0 && gradient < SG_FUNCTION_SIGMOID_GRADIENT ? 1 : 0;
}

// The derivative at x of the function with this gradient, as two terms that are added.
inline std::pair<real, real> slope_terms(sg_function gradient, real x) {
  // Of x times the sigmoid of t.
  const auto of_product = [x](real t, real t_slope) {
    const real rest = sigmoid(t) * sigmoid(-t);
    return std::pair<real, real>{sigmoid(t), rest == 0 ? 0 : x * t_slope * rest};
  };
  if (std::isinf(x)) return {slope_at_infinity(gradient, x), 0};
  switch (gradient) {
    case SG_FUNCTION_RELU_GRADIENT: return {x > 0 ? 1 : x <= 0 ? 0 : x, 0};
    case SG_FUNCTION_GELU_GRADIENT:
      return of_product(gelu_argument(x), twice_root_of_2_over_pi * (1 + 3 * 0.044715L * x * x));
    case SG_FUNCTION_GELU_ERF_GRADIENT:
      return {std::erfc(-x / std::sqrt(real{2})) / 2, x * std::exp(-x * x / 2) / std::sqrt(2 * std::acos(real{-1}))};
    case SG_FUNCTION_SILU_GRADIENT: return of_product(x, 1);
    case SG_FUNCTION_SIGMOID_GRADIENT: return {sigmoid(x) * sigmoid(-x), 0};
    default: return {4 * sigmoid(2 * x) * sigmoid(-2 * x), 0};  // of tanh
  }
}
inline real slope(sg_function gradient, real x) {
  const auto [first, second] = slope_terms(gradient, x);
  return first + second;
}

// Of one operand, or two.
inline real value_of(sg_function function, real a, real b) {
  const bool is_product =
      function == SG_FUNCTION_GELU || function == SG_FUNCTION_GELU_ERF || function == SG_FUNCTION_SILU;
  if (is_product && std::isinf(a) && a < 0) return 0;
  switch (function) {
    case SG_FUNCTION_RELU: return a < 0 ? 0 : a;
    case SG_FUNCTION_GELU: return a * sigmoid(gelu_argument(a));
    case SG_FUNCTION_GELU_ERF: return a / 2 * std::erfc(-a / std::sqrt(real{2}));
    case SG_FUNCTION_SILU: return a * sigmoid(a);
    case SG_FUNCTION_SIGMOID: return sigmoid(a);
    case SG_FUNCTION_TANH: return std::tanh(a);
    case SG_FUNCTION_ADD: return a + b;
    case SG_FUNCTION_MULTIPLY: return a * b;
    default: return a * slope(function, b);
  }
}

// The activation of a GEMM; NaN stays NaN.
inline real activated(sg_activation activation, real x) {
  if (activation == SG_ACTIVATION_RELU) return value_of(SG_FUNCTION_RELU, x, 0);
  return activation == SG_ACTIVATION_GELU ? value_of(SG_FUNCTION_GELU, x, 0) : x;
}

}  // namespace sg_reference
