// SPDX-License-Identifier: Apache-2.0
// Untrusted text: variables of the environment, and texts for messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sg {

// The value of a variable; "" if unset, and always in a setuid program. Throws SG_STATUS_INVALID_ARGUMENT if it is
// longer than `most` bytes.
std::string owner_variable(const char *name, std::size_t most);

// `text` with everything but printable ASCII escaped as \xNN, cut with "..." to `most` bytes.
std::string printable(std::string_view text, std::size_t most = 160);

}  // namespace sg
