// SPDX-License-Identifier: Apache-2.0
#include "triangular.hpp"

#include "operations.hpp"

namespace sg::sim {

std::function<void()> work_of(const address_space &memory, const sg_backend_triangular &what) {
  const std::int64_t order = what.side == SG_SIDE_LEFT ? what.m : what.n;
  const std::byte *a = memory.device_bytes(what.a, strided_extent(order, 1, order, what.lda, what.type),
                                           "A of a triangular solve or product");
  std::byte *b = memory.device_bytes(what.b, strided_extent(what.m, 1, what.n, what.ldb, what.type),
                                     "B of a triangular solve or product");
  return [what, a, b] { run_triangular(what, a, b); };
}

}  // namespace sg::sim
