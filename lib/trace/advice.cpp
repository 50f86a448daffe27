// SPDX-License-Identifier: Apache-2.0
#include "trace/advice.hpp"

#include <algorithm>

namespace sg::trace {

std::vector<advice> advice_of(const recording &from, const history &measured) {
  std::vector<advice> all = advice_by_plan(from, measured);
  for (advice &each : advice_by_pattern(from, measured)) all.push_back(std::move(each));
  std::stable_sort(all.begin(), all.end(),
                   [](const advice &x, const advice &y) { return x.gain_seconds > y.gain_seconds; });
  return all;
}

}  // namespace sg::trace
