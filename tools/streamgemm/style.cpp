// SPDX-License-Identifier: Apache-2.0
#include "style.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace sg::cli {

static bool has_colours(int file) {
  const char *const none = std::getenv("NO_COLOR"), *const terminal = std::getenv("TERM");
  return !(none && *none) && terminal && std::strcmp(terminal, "dumb") != 0 && isatty(file);
}

static std::string in_style(int file, const char *codes, const std::string &text) {
  return has_colours(file) ? std::string("\033[") + codes + "m" + text + "\033[0m" : text;
}

std::string heading(const std::string &text) { return in_style(STDOUT_FILENO, "1", text); }

std::string good(const std::string &text) { return in_style(STDOUT_FILENO, "32", text); }

std::string alarm(const std::string &text) { return in_style(STDERR_FILENO, "1;31", text); }

}  // namespace sg::cli
