// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/types.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>

#include "api/entry.hpp"
#include "api/structs.hpp"

namespace sg {
namespace {

struct initial_struct {
  const char *name;
  const void *value;
  std::size_t size;
  std::span<const std::size_t> starts;  // of its members
  bool is_sized;
};

template <class Struct>
constexpr initial_struct initial(const char *name) {
  using known = public_struct<Struct>;
  return {name, &known::initial, sizeof(Struct), known::starts, known::is_sized};
}

#define SG_INITIAL_ENTRY(name) initial<name>(#name),
constexpr initial_struct initial_structs[] = {SG_EACH_INITIAL_STRUCT(SG_INITIAL_ENTRY)};
#undef SG_INITIAL_ENTRY

const initial_struct &initial_of(const char *name) {
  for (const initial_struct &each : initial_structs)
    if (std::strcmp(each.name, name) == 0) return each;
  throw error(SG_STATUS_INVALID_ARGUMENT, "@name is %.64s, which is no struct with an INIT macro", name);
}

}  // namespace
}  // namespace sg

sg_status sg_struct_init(const char *name, void *out_struct, size_t size) {
  return sg::guarded([&] {
    sg::require(name, "name");
    sg::require(out_struct, "out_struct");
    const sg::initial_struct &initial = sg::initial_of(name);
    if (size == 0 || size % 8 != 0 || size > sg::max_struct_size ||
        (size < initial.size && !sg::is_between_members(initial.starts, size)))
      throw sg::error(SG_STATUS_INVALID_ARGUMENT,
                      "@size is %zu; of %s, which has %zu bytes, it must be a multiple of 8 from 8 to %zu that ends "
                      "within no member",
                      size, initial.name, initial.size, sg::max_struct_size);
    std::memset(out_struct, 0, size);
    std::memcpy(out_struct, initial.value, std::min(size, initial.size));
    if (initial.is_sized) std::memcpy(out_struct, &size, sizeof size);
  });
}
