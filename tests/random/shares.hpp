// SPDX-License-Identifier: Apache-2.0
// How often properties were drawn, printed at the end of a random test: a property that is never drawn is not tested.
#pragma once

#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace sg_test {

class shares {
 public:
  // Counts a draw of the property; returns `is_drawn`.
  bool note(const std::string &property, bool is_drawn) {
    const std::lock_guard guard(mutex_);
    auto &[drawn, all] = counts_[property];
    drawn += is_drawn, ++all;
    return is_drawn;
  }
  void print() const {
    const std::lock_guard guard(mutex_);
    const char *separator = "drawn: ";
    for (const auto &[property, count] : counts_) {
      std::printf("%s%s %.2g %%", separator, property.c_str(), 100.0 * double(count.first) / double(count.second));
      separator = ", ";
    }
    std::printf("\n");
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::pair<long, long>> counts_;  // times drawn, of all times
};

}  // namespace sg_test
