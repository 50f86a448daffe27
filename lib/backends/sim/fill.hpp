// SPDX-License-Identifier: Apache-2.0
// The operation of fill.h.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/common/types.hpp"

namespace sg::sim {

// The command's own pointer is not used.
inline void run_fill(const sg_backend_fill &what, std::byte *y) {
  const std::int64_t size = element_size(what.type);
  for (std::int64_t j = 0; j < what.n; ++j)
    for (std::int64_t i = 0; i < what.m; ++i)
      std::memcpy(y + (i + j * what.ldy) * size, what.pattern, static_cast<std::size_t>(size));
}

}  // namespace sg::sim
