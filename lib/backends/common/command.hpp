// SPDX-License-Identifier: Apache-2.0
// Commands: from the header to the struct, and their names in messages.
#pragma once

#include <streamgemm/backend.h>

namespace sg {
inline namespace common {

// Downcasts a header to its command struct.
template <class Command>
const Command &as(const sg_backend_command &what) noexcept {
  return reinterpret_cast<const Command &>(what);
}

constexpr const char *name_of(sg_backend_command_kind kind) noexcept {
  switch (kind) {
    case SG_BACKEND_MARKER: return "a marker";
#define SG_NAME(NAME, KIND, TITLE) \
  case SG_BACKEND_##KIND: return TITLE;
      SG_BACKEND_COMMANDS(SG_NAME)
#undef SG_NAME
  }
  return "an unknown command";
}

}  // namespace common
}  // namespace sg
