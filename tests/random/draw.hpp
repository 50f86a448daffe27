// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "case.hpp"

namespace sg_test::random_tests {

// The test case of a seed: the same on every machine, but for the devices of its memory and work where there are
// several.
test_case draw(std::uint64_t seed, int devices);

}  // namespace sg_test::random_tests
