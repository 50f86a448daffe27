// SPDX-License-Identifier: Apache-2.0
// Words from outside the library, made safe: variables of the environment, and texts for messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sg {

// The value of a variable that the process's owner set; "" when it is not set, and always in a setuid program. Throws
// SG_STATUS_INVALID_ARGUMENT when it is longer than `most` bytes.
std::string owner_variable(const char *name, std::size_t most);

// `text` with everything but printable ASCII escaped as \xNN, and "..." in place of what does not fit `most` bytes.
std::string printable(std::string_view text, std::size_t most = 160);

}  // namespace sg
