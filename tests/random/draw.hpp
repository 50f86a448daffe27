// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "case.hpp"

namespace sg_test::random_tests {

// The test case of a seed: the same on every machine.
test_case draw(std::uint64_t seed);

}  // namespace sg_test::random_tests
