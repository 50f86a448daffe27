// SPDX-License-Identifier: Apache-2.0
// Reductions and gradients of one row, in the type of the arithmetic, on the host.
#pragma once

#include <streamgemm/backend.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "backends/common/pairwise_sum.hpp"

namespace sg {
inline namespace common {

// The greater or the lesser of two; NaN if one is NaN.
template <class Real>
constexpr Real extreme_of(Real best, Real value, bool is_max) noexcept {
  const bool is_better = is_max ? value > best : value < best;
  return is_better || value != value ? value : best;
}
// That of nothing.
template <class Real>
constexpr Real no_extreme(bool is_max) noexcept {
  return is_max ? -std::numeric_limits<Real>::infinity() : std::numeric_limits<Real>::infinity();
}
constexpr bool is_sum(sg_reduction reduction) noexcept {
  return reduction == SG_REDUCTION_SUM || reduction == SG_REDUCTION_MEAN;
}

// value(j) of n columns, reduced.
template <class Real, class Value>
Real reduced(sg_reduction reduction, std::int64_t n, Value &&value) {
  if (is_sum(reduction)) {
    const Real sum = pairwise_sum<Real>(0, n, value);
    return reduction == SG_REDUCTION_MEAN ? sum / static_cast<Real>(n) : sum;
  }
  const bool is_max = reduction == SG_REDUCTION_MAX;
  Real best = no_extreme<Real>(is_max);
  for (std::int64_t j = 0; j < n; ++j) best = extreme_of(best, value(j), is_max);
  return best;
}

inline std::int64_t index_at(const void *indices, std::int64_t i, std::int32_t bytes) noexcept {
  return bytes == 8 ? static_cast<const std::int64_t *>(indices)[i] : static_cast<const std::int32_t *>(indices)[i];
}

// The greatest or the least of n elements that are no NaN, of several at a time, so that compilers vectorize it.
template <bool is_max, class Real>
Real extreme_without_nan(const Real *x, std::int64_t n) noexcept {
  constexpr int lanes = 16;
  const auto better = [](Real a, Real b) { return (is_max ? b > a : b < a) ? b : a; };
  Real best[lanes];
  for (Real &each : best) each = no_extreme<Real>(is_max);
  std::int64_t j = 0;
  for (; j + lanes <= n; j += lanes)
    for (int lane = 0; lane < lanes; ++lane) best[lane] = better(best[lane], x[j + lane]);
  for (; j < n; ++j) best[0] = better(best[0], x[j]);
  for (const Real each : best) best[0] = better(best[0], each);
  return best[0];
}
template <class Real>
bool has_nan(const Real *x, std::int64_t n) noexcept {
  int found = 0;
  for (std::int64_t j = 0; j < n; ++j) found |= x[j] != x[j] ? 1 : 0;
  return found != 0;
}
// NaN if one is NaN.
template <class Real>
Real extreme(const Real *x, std::int64_t n, bool is_max) noexcept {
  if (has_nan(x, n)) return std::numeric_limits<Real>::quiet_NaN();
  return is_max ? extreme_without_nan<true>(x, n) : extreme_without_nan<false>(x, n);
}

// Adds a row to the sums of its group, which begin with its first row.
template <class Real>
void add_to_group(const sg_backend_norm_backward &what, std::int64_t row, Real *sums, const Real *values) noexcept {
  const bool is_first = row % what.group_rows == 0;
  for (std::int64_t j = 0; j < what.cols; ++j) sums[j] = is_first ? values[j] : sums[j] + values[j];
}

// A step of an optimizer on n values; the states may be NULL as in the command.
template <class Real>
void optimize(const sg_backend_optimizer &what, Real *parameters, const Real *gradient, Real *first, Real *second,
              std::int64_t n) noexcept {
  const auto rate = static_cast<Real>(what.rate), decay = static_cast<Real>(what.weight_decay);
  const auto beta1 = static_cast<Real>(what.beta1), beta2 = static_cast<Real>(what.beta2);
  const auto rest1 = static_cast<Real>(1 - what.beta1), rest2 = static_cast<Real>(1 - what.beta2);
  const auto epsilon = static_cast<Real>(what.epsilon);
  const auto step = static_cast<Real>(what.rate / what.correction1);
  const auto root = static_cast<Real>(std::sqrt(what.correction2));
  const auto shrink = static_cast<Real>(1 - what.rate * what.weight_decay);
  if (what.is_adam) {
    for (std::int64_t i = 0; i < n; ++i) {
      const Real p = what.decoupled ? parameters[i] * shrink : parameters[i];
      const Real g = what.decoupled ? gradient[i] : gradient[i] + decay * parameters[i];
      first[i] = beta1 * first[i] + rest1 * g;
      second[i] = beta2 * second[i] + rest2 * g * g;
      parameters[i] = p - step * first[i] / (std::sqrt(second[i]) / root + epsilon);
    }
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    Real g = gradient[i] + decay * parameters[i];
    if (first) {
      first[i] = beta1 * first[i] + g;
      g = what.nesterov ? g + beta1 * first[i] : first[i];
    }
    parameters[i] -= rate * g;
  }
}

}  // namespace common
}  // namespace sg
