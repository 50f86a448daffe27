// SPDX-License-Identifier: Apache-2.0
#include "devices/environment.hpp"

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

}  // namespace sg
