// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace sg {

// As snprintf writes it, cut to 511 bytes.
[[gnu::format(printf, 1, 2)]] std::string formatted(const char *format, ...);

}  // namespace sg
