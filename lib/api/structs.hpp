// SPDX-License-Identifier: Apache-2.0
// The structs of the public headers, as structs.py reads them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/error.hpp"

namespace sg {

struct reserved_field {
  std::size_t offset, bytes;
  const char *path;  // within the struct: "a.reserved"
};

// initial: the value of the INIT macro, if there is one; reserved: the reserved fields, also those of members that are
// structs; starts: the offset of each member; is_sized: whether struct_size is the first.
template <class Struct>
struct public_struct;

}  // namespace sg

#include "api/structs.inc"

namespace sg {

// Whether an older version of the struct may have had that size, less than today's: a member begins there.
constexpr bool is_between_members(std::span<const std::size_t> starts, std::size_t size) noexcept {
  return size > 0 && std::find(starts.begin(), starts.end(), size) != starts.end();
}

// Throws if a reserved field is not 0. `name`: the struct's in messages; `separator`: what follows it before a field.
template <class Struct>
void require_reserved_zero(const Struct &given, const char *name, const char *separator = "->") {
  for (const reserved_field &each : public_struct<Struct>::reserved) {
    std::uint64_t value = 0;
    std::memcpy(&value, reinterpret_cast<const char *>(&given) + each.offset, each.bytes);
    if (value != 0)
      throw error(SG_STATUS_INVALID_ARGUMENT, "@%s%s%s is %llu; it must be 0", name, separator, each.path,
                  static_cast<unsigned long long>(value));
  }
}

}  // namespace sg
