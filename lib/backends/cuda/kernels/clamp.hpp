// SPDX-License-Identifier: Apache-2.0
// The form of the kernel of clamp.h.
#pragma once

#include "accesses.hpp"

namespace sg::cuda {

// The columns of operands without gaps as one column.
inline sg_backend_clamp as_one_column(sg_backend_clamp what) noexcept {
  const bool dense = what.ldx == what.m && what.ldy == what.m && (what.dy == nullptr || what.lddy == what.m);
  if (dense) what.m *= what.n, what.n = 1;
  return what;
}

// Elements at once.
inline std::int64_t pack_of(const sg_backend_clamp &what) noexcept {
  const std::int64_t size = element_size(what.type);
  const bool aligned = are_aligned({{what.x, widest_access, what.n, what.ldx * size},
                                    {what.dy, widest_access, what.n, what.dy == nullptr ? 0 : what.lddy * size},
                                    {what.y, widest_access, what.n, what.ldy * size}});
  return aligned ? widest_access / size : 1;
}

}  // namespace sg::cuda
