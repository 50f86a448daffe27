// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/types.h>

#include <algorithm>
#include <cstring>

#include "api/entry.hpp"
#include "api/structs.hpp"
#include "base/text.hpp"

namespace sg {
namespace {

struct initial_struct {
  const char *name;
  const void *value;
  std::size_t size;
  bool (*is_size)(std::size_t size);
  bool is_sized;
};

template <class Struct>
constexpr initial_struct initial(const char *name) {
  using known = public_struct<Struct>;
  return {name, &known::initial, sizeof(Struct), is_size_of<Struct>, known::is_sized};
}

#define SG_INITIAL_ENTRY(name) initial<name>(#name),
constexpr initial_struct initial_structs[] = {SG_EACH_INITIAL_STRUCT(SG_INITIAL_ENTRY)};
#undef SG_INITIAL_ENTRY

const initial_struct &initial_of(const char *name) {
  for (const initial_struct &each : initial_structs)
    if (std::strcmp(each.name, name) == 0) return each;
  throw error(SG_STATUS_INVALID_ARGUMENT, "@name is %s, which is no struct with an INIT macro",
              printable(name, 64).c_str());
}

}  // namespace
}  // namespace sg

sg_status sg_struct_init(const char *name, void *out_struct, size_t size) {
  return sg::guarded([&] {
    sg::require(name, "name");
    sg::require(out_struct, "out_struct");
    const sg::initial_struct &initial = sg::initial_of(name);
    if (!initial.is_size(size))
      throw sg::error(SG_STATUS_INVALID_ARGUMENT, "@size is %zu, which %s has in no release: it has %zu here", size,
                      initial.name, initial.size);
    std::memset(out_struct, 0, size);
    std::memcpy(out_struct, initial.value, std::min(size, initial.size));
    if (initial.is_sized) std::memcpy(out_struct, &size, sizeof size);
  });
}
