// SPDX-License-Identifier: Apache-2.0
// Parts of the texts that describe commands.
#pragma once

#include <string>

#include "ops/view.hpp"

namespace sg {

std::string shape_text(const view &v);                                // " 3 x 4"
std::string operand_text(const buffer_list &buffers, const view &v);  // " of A"; "" when it is none

}  // namespace sg
