// SPDX-License-Identifier: Apache-2.0
#include "backend/environment.hpp"

#include <cstdlib>
#include <cstring>

#include "base/error.hpp"

namespace sg {

std::string owner_variable(const char *name, std::size_t most) {
  const char *value = secure_getenv(name);
  if (!value) return "";
  const std::size_t length = strnlen(value, most + 1);
  if (length > most) throw error(SG_STATUS_INVALID_ARGUMENT, "the variable %s is longer than %zu bytes", name, most);
  return std::string(value, length);
}

std::string printable(std::string_view text, std::size_t most) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte >= 0x20 && byte < 0x7f;
    if (out.size() + (plain ? 1 : 4) > most) return out + "...";
    if (plain)
      out += c;
    else
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
  }
  return out;
}

}  // namespace sg
