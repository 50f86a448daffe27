// SPDX-License-Identifier: Apache-2.0
#include "ops/describe.hpp"

namespace sg {

std::string shape_text(const view &v) { return ' ' + std::to_string(v.rows) + " x " + std::to_string(v.cols); }

std::string operand_text(const buffer_list &buffers, const view &v) {
  static constexpr const char *names[operands_of_problem] = {"A", "B", "C", "the bias"};
  if (buffer_of(buffers, v).kind != buffer_kind::operand) return "";
  return std::string(" of ") + names[v.buffer % operands_of_problem];
}

}  // namespace sg
