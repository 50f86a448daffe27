// SPDX-License-Identifier: Apache-2.0
#include "api/plan_options.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "api/entry.hpp"

namespace sg {

plan_request check_plan_options(const sg_plan_options *given, const char *name, operand_spaces &out_spaces) {
  plan_request r;
  if (!given) return r;
  const sg_plan_options o = options_of(given, name);
  char field[96];
  const auto in = [&](const char *what) {
    std::snprintf(field, sizeof field, "%s->%s", name, what);
    return field;
  };
  require_range(o.split, SG_SPLIT_AUTO, SG_SPLIT_BATCH, in("split"));
  require_range(o.parts, 0, 4096, in("parts"));
  require_range(o.streams, 0, 4096, in("streams"));
  require_range(o.tile_m, 0, INT64_MAX, in("tile_m"));
  require_range(o.tile_n, 0, INT64_MAX, in("tile_n"));
  require_range(o.tile_k, 0, INT64_MAX, in("tile_k"));
  if (o.memory_limit >= INT64_MAX)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s is %llu; it must be less than %llu", in("memory_limit"),
                static_cast<unsigned long long>(o.memory_limit), static_cast<unsigned long long>(INT64_MAX));
  require_range(o.place_a, SG_MEMORY_AUTO, SG_MEMORY_PEER, in("place_a"));
  require_range(o.place_b, SG_MEMORY_AUTO, SG_MEMORY_PEER, in("place_b"));
  require_range(o.place_c, SG_MEMORY_AUTO, SG_MEMORY_PEER, in("place_c"));
  require_range(o.place, SG_MEMORY_AUTO, SG_MEMORY_PEER, in("place"));
  require_range(o.device_count, 0, INT32_MAX, in("device_count"));
  r.devices = o.devices;
  r.device_count = o.device_count;
  r.split = static_cast<split_kind>(o.split);
  r.parts = o.parts;
  r.streams = o.streams;
  r.memory_limit = static_cast<std::int64_t>(o.memory_limit);
  r.tile_m = o.tile_m;
  r.tile_n = o.tile_n;
  r.tile_k = o.tile_k;
  out_spaces = {o.place_a, o.place_b, o.place_c, SG_MEMORY_AUTO, o.place};
  return r;
}

}  // namespace sg
