// SPDX-License-Identifier: Apache-2.0
// The operation of fill.h, on one thread.
#include <algorithm>
#include <cstring>

#include "backends/common/types.hpp"
#include "backends/cpu/worker/poll.hpp"
#include "layers.hpp"

namespace sg::cpu {

sg_status run_fill(const sg_backend_fill &what, workspace &space) noexcept {
  constexpr std::int64_t step = 4096;  // bytes
  alignas(64) char line[step];
  for (std::int64_t at = 0; at < step; at += std::int64_t{sizeof what.pattern})
    std::memcpy(line + at, what.pattern, sizeof what.pattern);
  const std::int64_t size = element_size(what.type);
  const bool is_dense = what.ldy == what.m;
  const std::int64_t bytes = what.m * size * (is_dense ? what.n : 1), columns = is_dense ? 1 : what.n;
  poll end(space);
  for (std::int64_t j = 0; j < columns; ++j) {
    char *const to = static_cast<char *>(what.y) + j * what.ldy * size;
    for (std::int64_t at = 0; at < bytes; at += step) {
      const std::int64_t count = std::min(step, bytes - at);
      std::memcpy(to + at, line, static_cast<std::size_t>(count));
      if (end.stops(count / size)) return SG_STATUS_CANCELLED;
    }
  }
  return SG_STATUS_OK;
}

}  // namespace sg::cpu
