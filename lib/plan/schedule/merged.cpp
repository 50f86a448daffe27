// SPDX-License-Identifier: Apache-2.0
#include "plan/schedule/merged.hpp"

#include <algorithm>

namespace sg {

std::int64_t merged_schedule::append(const schedule &next, std::int64_t after, std::uint16_t lane) {
  const auto buffers_before = static_cast<std::int32_t>(whole_.buffers.size());
  const auto commands_before = static_cast<std::uint32_t>(whole_.commands.size());
  for (buffer each : next.buffers) {
    if (each.kind == buffer_kind::parameter) each.parameter += buffers_before;
    whole_.buffers.push_back(each);
  }
  for (command each : next.commands) {
    for (accessed_view &view : each.views)
      if (view.exists()) view.buffer += buffers_before;
    const auto first = static_cast<std::uint32_t>(whole_.waits.size());
    for (std::uint32_t w = 0; w < each.waits; ++w)
      whole_.waits.push_back(next.waits[each.first_wait + w] + commands_before);
    if (each.waits == 0 && after != nothing) {
      whole_.waits.push_back(static_cast<std::uint32_t>(after));
      each.waits = 1;
    }
    each.first_wait = first;
    if (each.where.kind == lane_kind::compute) each.where.index += lane;
    whole_.commands.push_back(each);
  }
  for (int kind = 0; kind < lane_kinds; ++kind) whole_.lanes[kind] = std::max(whole_.lanes[kind], next.lanes[kind]);
  return std::int64_t(whole_.commands.size()) - 1;
}

}  // namespace sg
