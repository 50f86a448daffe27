// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "case.hpp"
#include "reference.hpp"

namespace sg_test::random_tests {

// The devices of a context with that name, which a process of its own opens. Throws std::runtime_error.
int devices_of(const std::string &device);

// Runs a test in a process of its own, with a new context, `times` times over. A crash or a hang is a fault too.
std::optional<fault> run_isolated(const std::string &device, const test_case &t, int times = 1);

// Drops features and halves sizes one by one while the test still fails, for at most `seconds`. Returns the fault of
// the smallest test.
test_case shrink(const std::string &device, test_case t, fault &seen, double seconds);

}  // namespace sg_test::random_tests
