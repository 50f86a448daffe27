// SPDX-License-Identifier: Apache-2.0
// Predicted beside measured times.
#pragma once

#include <string>

#include "format.hpp"
#include "verbs.hpp"

namespace sg::cli {

// The measured time divided by the predicted one; null if either is missing.
inline json prediction_ratio(double measured, double predicted) {
  return measured > 0 && predicted > 0 ? json(measured / predicted) : json();
}

inline std::string compared(double predicted, double measured) {
  const json ratio = prediction_ratio(measured, predicted);
  return "predicted " + format_seconds(predicted) + ", took " + format_seconds(measured) +
         (ratio.is_null() ? "" : ", ratio " + format_fixed(ratio, 3));
}

}  // namespace sg::cli
