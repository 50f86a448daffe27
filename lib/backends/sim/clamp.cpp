// SPDX-License-Identifier: Apache-2.0
#include "clamp.hpp"

#include "operations.hpp"

namespace sg::sim {

std::function<void()> work_of(const address_space &memory, const sg_backend_clamp &what) {
  const auto extent = [&](std::int64_t ld) { return strided_extent(what.m, 1, what.n, ld, what.type); };
  const std::byte *x = memory.device_bytes(what.x, extent(what.ldx), "X of a clamp");
  const std::byte *dy = what.dy ? memory.device_bytes(what.dy, extent(what.lddy), "dY of a clamp") : nullptr;
  std::byte *y = memory.device_bytes(what.y, extent(what.ldy), "the result of a clamp");
  return [what, x, dy, y] { run_clamp(what, x, dy, y); };
}

}  // namespace sg::sim
