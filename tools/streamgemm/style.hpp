// SPDX-License-Identifier: Apache-2.0
// Colours for people at a terminal. NO_COLOR (https://no-color.org), TERM=dumb and a stream that is no terminal turn
// them off.
#pragma once

#include <string>

namespace sg::cli {

std::string heading(const std::string &text);  // of a table or a section, on stdout
std::string good(const std::string &text);     // on stdout
std::string alarm(const std::string &text);    // on stderr

}  // namespace sg::cli
