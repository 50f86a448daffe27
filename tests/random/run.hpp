// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "arena.hpp"
#include "case.hpp"
#include "reference.hpp"

namespace sg_test::random_tests {

// A context with what tests of one device need: memory, streams.
class bench {
 public:
  bench(const char *device, bool check_hazards);
  ~bench();
  bench(const bench &) = delete;

  sg_context *context = nullptr;
  std::unique_ptr<arena> memory;
  std::vector<sg_stream *> streams;  // normal, normal, low, high, and one of few compute units where there is one
};

// How often a call was refused, by why it was allowed to be.
using refusals = std::map<std::string, long>;

// Runs a test and says what was wrong first. Refusals that the documentation allows are counted. When nothing was wrong
// `sample` gets one element of the last product as it then is.
std::optional<fault> run(bench &on, const test_case &t, refusals &refused, fault *sample = nullptr);

}  // namespace sg_test::random_tests
