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
  } else if (c.is<ops::copy_in>() || c.is<ops::copy_out>() || c.is<ops::pack>() || c.is<ops::unpack>()) {
    out.value = static_cast<std::uint64_t>(bytes_of_copy(buffers, c));
  }
}

void describe_copy(event_body &out, bool to_device, bool from_device, std::uint64_t bytes) noexcept {
  const bool within = to_device && from_device;
  out.operation = static_cast<std::uint8_t>(
      within ? std::size_t{device_copy_operation}
             : payload(to_device ? payload(ops::copy_in{}) : payload(ops::copy_out{})).index());
  out.lane_kind = static_cast<std::uint8_t>(within      ? lane_kind::compute
                                            : to_device ? lane_kind::copy_in
                                                        : lane_kind::copy_out);
  out.value = bytes;
  out.count = 1;
}

}  // namespace sg::trace
