// SPDX-License-Identifier: Apache-2.0
// The arguments of a random test: --device NAME --seconds N [--seed N]; SG_SOAK=1 makes it 60 times as long.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "seeds.hpp"

namespace sg_test {

// The time and the seeds of a random test.
class random_rounds {
 public:
  random_rounds(double seconds, const std::optional<std::uint64_t> &seed) : seconds_(seconds), seeds_(seed) {}

  // The seed of the next round, or nothing when the time is over; the first round always runs.
  std::optional<std::uint64_t> next() {
    const double done = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count() / seconds_;
    if (count_ > 0 && done >= 1) return {};
    ++count_;
    return seeds_.next(done);
  }

  long count() const { return count_; }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double seconds_;
  seed_sequence seeds_;
  long count_ = 0;
};

// Calls run(device, rounds).
template <class Run>
int run_with_arguments(int count, char **arguments, Run &&run) {
  const char *device = "cpu";
  double seconds = 5;
  std::optional<std::uint64_t> seed;
  for (int i = 1; i + 1 < count; i += 2) {
    if (std::strcmp(arguments[i], "--device") == 0) device = arguments[i + 1];
    if (std::strcmp(arguments[i], "--seconds") == 0) seconds = std::atof(arguments[i + 1]);
    if (std::strcmp(arguments[i], "--seed") == 0) seed = std::strtoull(arguments[i + 1], nullptr, 10);
  }
  if (const char *soak = std::getenv("SG_SOAK"); soak && std::strcmp(soak, "1") == 0) seconds *= 60;
  random_rounds rounds(seconds, seed);
  return run(device, rounds);
}

}  // namespace sg_test
