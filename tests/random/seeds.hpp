// SPDX-License-Identifier: Apache-2.0
// The seeds of a random test.
#pragma once

#include <cstdint>
#include <optional>
#include <random>

namespace sg_test {

inline std::uint64_t fresh_seed() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32 | device()) >> 1;
}

// A given seed and its successors. Without one: 1, 2, ... during the first half of the test, so that each run repeats
// them, then a fresh seed and its successors.
class seed_sequence {
 public:
  explicit seed_sequence(const std::optional<std::uint64_t> &given) : next_(given.value_or(1)), fixed_(!given) {}

  // `done`: the share of the test that has run, 0 to 1.
  std::uint64_t next(double done) {
    if (fixed_ && done >= 0.5) next_ = fresh_seed(), fixed_ = false;
    return next_++;
  }

 private:
  std::uint64_t next_;
  bool fixed_;
};

}  // namespace sg_test
