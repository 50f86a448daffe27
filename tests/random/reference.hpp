// SPDX-License-Identifier: Apache-2.0
// What a product must give, in higher precision, element by element, and what it may be off by (docs/design: Higham's
// bound with the unit roundoffs of the accumulator and of the result; integers to the bit).
#pragma once

#include <optional>
#include <string>

#include "case.hpp"
#include "support/numbers.hpp"

namespace sg_test::random_tests {

// What is wrong first.
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

struct product_images {
  operand_image a, b, c, c_before, bias;
};

std::optional<fault> check_elements(const product_case &p, int parts, const product_images &images);

}  // namespace sg_test::random_tests
