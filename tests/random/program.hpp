// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "case.hpp"
#include "reference.hpp"

namespace sg_test::random_tests {

// A test as a small C program. Where one element is wrong the program compares it, and exits with 1 while it is wrong.
std::string program_of(const std::string &device, const test_case &t, const fault &seen);

}  // namespace sg_test::random_tests
