// SPDX-License-Identifier: Apache-2.0
// Which cases of a long sweep run.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace sg::test {

// Every Nth case in the order of the loops. If N shares no factor with the loops' lengths, it reaches every value of a
// loop that has N or more cases within each of its values. N is that of the sweep times SG_TEST_EVERY, `most` at most;
// SG_SOAK=1, or a sweep that is short: all cases.
class sweep {
 public:
  explicit sweep(long every = 1, bool is_short = false, long most = 1000) {
    const char *const given = std::getenv("SG_TEST_EVERY"), *const soak = std::getenv("SG_SOAK");
    every_ =
        is_short || (soak && *soak == '1') ? 1 : std::min(most, every * (given ? std::max(1L, std::atol(given)) : 1));
  }
  ~sweep() {  // says how many were left out
    if (tried_ < cases_) std::printf("%ld of %ld cases are tried\n", tried_, cases_);
  }
  sweep(const sweep &) = delete;
  sweep &operator=(const sweep &) = delete;

  bool tries_next() {
    const bool tries = cases_++ % every_ == 0;
    tried_ += tries;
    return tries;
  }

 private:
  long every_, cases_ = 0, tried_ = 0;
};

}  // namespace sg::test
