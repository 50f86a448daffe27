// SPDX-License-Identifier: Apache-2.0
// Shared texts in descriptions of commands.
#pragma once

#include <string>

#include "ops/view.hpp"

namespace sg {

std::string shape_text(const view &v);                                // " 3 x 4"
std::string operand_text(const buffer_list &buffers, const view &v);  // " of A"; "" for a buffer that is no operand

}  // namespace sg
