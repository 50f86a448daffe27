// SPDX-License-Identifier: Apache-2.0
#include "fill.hpp"

#include "layers.hpp"
#include "operations.hpp"

namespace sg::sim {

std::function<void()> work_of(const address_space &memory, const sg_backend_fill &what) {
  std::byte *y =
      memory.device_bytes(what.y, strided_extent(what.m, 1, what.n, what.ldy, what.type), "the result of a fill");
  return [what, y] { run_fill(what, y); };
}

}  // namespace sg::sim
