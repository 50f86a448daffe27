// SPDX-License-Identifier: Apache-2.0
#include "ops/describe.hpp"

namespace sg {

std::string shape_text(const view &v) { return ' ' + std::to_string(v.rows) + " x " + std::to_string(v.cols); }

std::string operand_text(const buffer_list &buffers, const view &v) {
  const buffer &of = buffer_of(buffers, v);
  return of.kind == buffer_kind::parameter && *of.name ? std::string(" of ") + of.name : "";
}

}  // namespace sg
