// SPDX-License-Identifier: Apache-2.0
#include "trace/command_event.hpp"

#include <algorithm>

#include "ops/copy.hpp"
#include "ops/operation.hpp"

namespace sg::trace {

namespace {

std::uint32_t saturated(std::int64_t size) noexcept {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(size, 0, UINT32_MAX));
}

}  // namespace

void describe_command(event_body &out, const buffer_list &buffers, const command &c) {
  out.operation = static_cast<std::uint8_t>(c.what.index());
  out.lane_kind = static_cast<std::uint8_t>(c.where.kind);
  out.count = 1;
  if (const auto *gemm = c.as<ops::gemm>()) {
    out.m = saturated(gemm->m);
    out.n = saturated(gemm->n);
    out.k = saturated(gemm->k);
    out.count = saturated(c.views[ops::gemm::c].items);
  } else if (const auto *graph = c.as<ops::graph>()) {
    out.count = saturated(std::max(1, graph->commands));
  } else if (is_copy(c) || c.is<ops::pack>() || c.is<ops::unpack>()) {
    out.value = static_cast<std::uint64_t>(bytes_of_copy(buffers, c));
  }
}

}  // namespace sg::trace
