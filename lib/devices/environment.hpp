// SPDX-License-Identifier: Apache-2.0
// Variables of the environment.
#pragma once

#include <cstddef>
#include <string>

#include "base/text.hpp"

namespace sg {

// The value of a variable; "" if unset, and always in a setuid program. Throws SG_STATUS_INVALID_ARGUMENT if it is
// longer than `most` bytes.
std::string owner_variable(const char *name, std::size_t most);

}  // namespace sg
