// SPDX-License-Identifier: Apache-2.0
// The expected result of a GEMM in higher precision, element by element, and its error bound (docs/design: Higham's
// bound with the unit roundoffs of the accumulator and of the result; integers to the bit).
#pragma once

#include <optional>
#include <string>

#include "case.hpp"
#include "support/numbers.hpp"

namespace sg_test::random_tests {

// The first fault.
struct fault {
  std::string what;
  int step = -1;
  std::int64_t item = -1, i = 0, j = 0;  // of the element; -1: no element
  number seen, wanted;
  long double bound = 0;
};

struct operand_image {
  const std::uint8_t *bytes = nullptr;
  extent_of_operand extent;
};

struct gemm_images {
  operand_image a, b, c, c_before, bias;
};

std::optional<fault> check_elements(const gemm_case &p, int parts, const gemm_images &images);
// The last element of a result that is right and not empty, with the expected value and its bound.
fault last_element(const gemm_case &p, int parts, const gemm_images &images);

}  // namespace sg_test::random_tests
