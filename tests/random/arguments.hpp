// SPDX-License-Identifier: Apache-2.0
// The arguments of a random test: --device NAME --seconds N [--seed N].
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace sg_test {

// Calls run(device, seconds, seed); without a seed that of the time.
template <class Run>
int run_with_arguments(int count, char **arguments, Run &&run) {
  const char *device = "cpu";
  double seconds = 5;
  auto seed = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  for (int i = 1; i + 1 < count; i += 2) {
    if (std::strcmp(arguments[i], "--device") == 0) device = arguments[i + 1];
    if (std::strcmp(arguments[i], "--seconds") == 0) seconds = std::atof(arguments[i + 1]);
    if (std::strcmp(arguments[i], "--seed") == 0) seed = std::strtoull(arguments[i + 1], nullptr, 10);
  }
  return run(device, seconds, seed);
}

}  // namespace sg_test
