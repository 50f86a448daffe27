// SPDX-License-Identifier: Apache-2.0
// The sentences that open the page of a history.
#pragma once

#include <string>
#include <vector>

#include "trace/history.hpp"
#include "trace/metrics.hpp"

namespace sg::trace {

// Of the context whose span is the longest. Empty: there is nothing to say.
struct summary {
  std::string time;    // what took the time
  std::string limit;   // what limits
  std::string change;  // what to change, by the first of the history's advices, and its gain
};

// `metrics`: of `what`, by context.
summary summary_of(const history &what, const std::vector<context_metrics> &metrics);

}  // namespace sg::trace
