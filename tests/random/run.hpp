// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "arena.hpp"
#include "case.hpp"
#include "foreign.hpp"
#include "reference.hpp"

namespace sg_test::random_tests {

// A context with the resources for tests: memory, streams.
class bench {
 public:
  bench(const char *device, bool check_hazards);
  ~bench();
  bench(const bench &) = delete;

  sg_context *context = nullptr;
  int devices = 1;
  std::unique_ptr<arena> memory;
  // normal, normal, low, high, and one of few compute units where there is one; of several devices one of each
  std::vector<sg_stream *> streams;
  foreign_memory foreign;
};

// The number of allowed refusals, by reason.
using refusals = std::map<std::string, long>;

// Runs a test and returns its first fault. Refusals that the documentation allows are counted. Without a fault `sample`
// receives one element of the last GEMM's result.
std::optional<fault> run(bench &on, const test_case &t, refusals &refused, fault *sample = nullptr);

}  // namespace sg_test::random_tests
