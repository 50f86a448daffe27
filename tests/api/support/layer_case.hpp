// SPDX-License-Identifier: Apache-2.0
// What the tests of operations on matrices share: drawn matrices with gaps and of any layout, and the comparison of a
// result with a reference in extended precision.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/strided_matrix.hpp"

namespace sg_test {

// A refused call whose message has the text.
#define EXPECT_REFUSED(call, status, text) \
  EXPECT_STATUS(status, call);             \
  EXPECT_NE(std::string::npos, std::string(sg_last_error_message()).find(text)) << sg_last_error_message()

class layer_case : public on_each_device {
 protected:
  using matrix = strided_matrix;
  using reals = std::vector<long double>;
  static constexpr sg_dtype types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};
  static constexpr long double infinite = std::numeric_limits<long double>::infinity();
  static constexpr long double not_a_number = std::numeric_limits<long double>::quiet_NaN();

  std::int64_t below(std::int64_t n) { return std::int64_t(random_.below(int(n))); }
  sg_dtype any_type() { return types[below(4)]; }
  matrix::form any_form() {
    return {below(2) ? SG_LAYOUT_ROW_MAJOR : SG_LAYOUT_COLUMN_MAJOR, below(2) * below(9), below(2) * below(5)};
  }
  // Row major where that layout is the only one.
  matrix::form any_row_form() { return {SG_LAYOUT_ROW_MAJOR, below(2) * below(9), below(2) * below(5)}; }
  // Thin, empty and long ones.
  std::int64_t any_size(std::int64_t least = 0) {
    const std::int64_t most[] = {2, 9, 70, 400};
    return least + below(most[below(4)]);
  }
  // With values in (-scale, scale), as the type has them.
  matrix values(sg_dtype type, std::int64_t rows, std::int64_t cols, const matrix::form &how, long double scale = 1) {
    matrix made(context_, type, rows, cols, how);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < cols; ++j) made.set(i, j, scale * random_.real());
    made.send();
    return made;
  }
  static matrix result(sg_context *on, sg_dtype type, std::int64_t rows, std::int64_t cols, const matrix::form &how) {
    matrix made(on, type, rows, cols, how);
    made.send();
    return made;
  }

  // The relative error of one operation of the arithmetic, and that of storing a result.
  static long double arithmetic_error(sg_dtype type) { return std::ldexp(1.0L, type == SG_DTYPE_F64 ? -53 : -24); }
  static long double stored_error(sg_dtype type) {
    return type == SG_DTYPE_BF16 ? 0x1p-8L : type == SG_DTYPE_F16 ? 0x1p-11L : arithmetic_error(type);
  }
  // `wanted` row by row; `magnitude`: what the arithmetic's error is relative to, for each element. Gaps keep their
  // bytes.
  static void expect_near(matrix &y, const reals &wanted, const reals &magnitude, const std::string &what,
                          long double operations = 64) {
    const std::vector<std::uint8_t> before = y.gaps();
    y.fetch();
    ASSERT_EQ(before, y.gaps()) << what << ": a byte beside the result was written";
    const sg_dtype type = y.view.dtype;
    // Subnormal numbers, which an exponential need not become.
    const long double least = type == SG_DTYPE_F64 ? 0x1p-1022L : type == SG_DTYPE_F16 ? 0x1p-24L : 0x1p-125L;
    for (std::int64_t i = 0; i < y.view.rows; ++i)
      for (std::int64_t j = 0; j < y.view.cols; ++j) {
        const auto at = std::size_t(i * y.view.cols + j);
        const long double limit =
            operations * arithmetic_error(type) * magnitude[at] + stored_error(type) * std::fabs(wanted[at]) + least;
        const long double found = y.get(i, j);
        ASSERT_TRUE(std::isnan(wanted[at]) ? std::isnan(found)
                                           : found == wanted[at] || std::fabs(found - wanted[at]) <= limit)
            << what << ", element " << i << ", " << j << ": " << double(found) << " instead of " << double(wanted[at]);
      }
  }
  static std::string named(const char *operation, const sg_matrix &x) {
    return std::string(operation) + " of " + sg_dtype_name(x.dtype) + ", " + std::to_string(x.rows) + " x " +
           std::to_string(x.cols) + (x.layout == SG_LAYOUT_ROW_MAJOR ? " by rows" : " by columns");
  }

  random_source random_{11};
};

}  // namespace sg_test
