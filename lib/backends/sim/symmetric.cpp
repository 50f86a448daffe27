// SPDX-License-Identifier: Apache-2.0
#include "symmetric.hpp"

#include "operations.hpp"

namespace sg::sim {

std::function<void()> work_of(const address_space &memory, const sg_backend_symmetric &what) {
  const bool is_product = what.kind == SG_BACKEND_SYMMETRIC_MULTIPLY;
  const std::int64_t order = what.side == SG_SIDE_LEFT ? what.m : what.n;
  const std::int64_t rows = what.op == SG_TRANSPOSE_N ? what.n : what.k,
                     cols = what.op == SG_TRANSPOSE_N ? what.k : what.n;
  const auto found = [&](const void *at, std::int64_t of_rows, std::int64_t ld, std::int64_t of_cols,
                         const char *name) -> const std::byte * {
    return at ? memory.device_bytes(at, strided_extent(of_rows, 1, of_cols, ld, what.type), name) : nullptr;
  };
  const std::byte *a = is_product ? found(what.a, order, what.lda, order, "A of a symmetric product")
                                  : found(what.a, rows, what.lda, cols, "A of a symmetric update");
  const std::byte *b = is_product ? found(what.b, what.m, what.ldb, what.n, "B of a symmetric product")
                                  : found(what.b, rows, what.ldb, cols, "B of a symmetric update");
  std::byte *c = memory.device_bytes(what.c, strided_extent(what.m, 1, what.n, what.ldc, what.type),
                                     "C of a symmetric product or update");
  return [what, a, b, c] { run_symmetric(what, a, b, c); };
}

}  // namespace sg::sim
