// SPDX-License-Identifier: Apache-2.0
// The form of the kernel of fill.h.
#pragma once

#include "accesses.hpp"

namespace sg::cuda {

// Columns without gaps as one column.
inline sg_backend_fill as_one_column(sg_backend_fill what) noexcept {
  if (what.ldy == what.m) what.m *= what.n, what.n = 1;
  return what;
}

// Bytes at once: the most that address, pitch and length of the columns are multiples of.
inline std::int64_t word_of(const sg_backend_fill &what) noexcept {
  const std::int64_t size = element_size(what.type);
  std::int64_t word = widest_access;
  while (what.m * size % word != 0 || !is_aligned({what.y, word, what.n, what.ldy * size})) word /= 2;
  return word;
}

}  // namespace sg::cuda
