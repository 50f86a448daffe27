// SPDX-License-Identifier: Apache-2.0
// The form of the kernel of row_reduce.h.
#pragma once

#include "accesses.hpp"

namespace sg::cuda {

// Whether the elements of a row are apart, or so few that neighbouring threads compute neighbouring rows.
inline bool is_by_columns(const sg_backend_row_reduce &what) noexcept { return what.cols <= 8 || what.x_col != 1; }

// Elements at once.
inline std::int64_t pack_of(const sg_backend_row_reduce &what) noexcept {
  const std::int64_t size = element_size(what.type);
  const bool aligned = !is_by_columns(what) && are_aligned({{what.x, widest_access, what.rows, what.x_row * size}});
  return aligned ? widest_access / size : 1;
}

}  // namespace sg::cuda
