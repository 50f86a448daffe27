// SPDX-License-Identifier: Apache-2.0
// The handwritten digits of examples/data/digits.csv, which the build puts into the program (digits.py).
#pragma once

namespace sg::cli {

inline constexpr int digits = 1797, digit_pixels = 64, digit_classes = 10;

// Of each digit a letter for each pixel, 'a' for 0 to 'q' for 16, and one for the digit.
extern const char digit_rows[];

}  // namespace sg::cli
