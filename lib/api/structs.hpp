// SPDX-License-Identifier: Apache-2.0
// The structs of the public headers, as structs.py reads them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/error.hpp"

namespace sg {

struct reserved_field {
  std::size_t offset, bytes;
  const char *path;  // within the struct: "a.reserved"
};

// initial: the value of the INIT macro, if there is one; reserved: the reserved fields, also those of members that are
// structs; earlier_sizes: those of earlier releases; is_sized: whether struct_size is the first member.
template <class Struct>
struct public_struct;

}  // namespace sg

#include "api/structs.inc"

namespace sg {

// Whether a release has, or may have, the struct in that size: a later one's is larger than this library's.
template <class Struct>
constexpr bool is_size_of(std::size_t size) noexcept {
  const auto &earlier = public_struct<Struct>::earlier_sizes;
  if (size < sizeof(Struct)) return std::find(earlier.begin(), earlier.end(), size) != earlier.end();
  return size % alignof(Struct) == 0 && size <= 65536;
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
