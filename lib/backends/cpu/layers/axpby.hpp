// SPDX-License-Identifier: Apache-2.0
// Scale and add, on one thread.
#pragma once

#include <streamgemm/backend.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backends/cpu/elements/epilogue.hpp"
#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/simd/simd.hpp"
#include "backends/cpu/worker/workspace.hpp"

namespace sg::cpu {

// SG_STATUS_CANCELLED if the workspace is stopped, which is polled now and then.
inline sg_status run_axpby(const sg_backend_axpby &what, workspace &space) noexcept {
  const sg_dtype type = sum_type_of(what.type);
  const std::int64_t size = element_size(what.type);
  sg_scalar alpha = what.alpha, beta = what.beta;
  if (!is_complex(what.type)) alpha.im = beta.im = 0;
  const bool reads_c = !is_zero(beta);
  const epilogue end = {nullptr, false, what.activation};

  // Segments of a column that stay in the first-level cache.
  constexpr std::int64_t step = 512, segments_between_polls = 2048;
  std::int64_t segments = 0;
  alignas(64) char sums[step * 16], addend[step * 16];
  for (std::int64_t j = 0; j < what.n; ++j)
    for (std::int64_t i = 0; i < what.m; i += step) {
      const std::int64_t count = std::min(step, what.m - i);
      char *c = static_cast<char *>(what.c) + (i + j * what.ldc) * size;
      if (reads_c) widen(sums, c, what.type, count);
      if (what.a != nullptr)
        widen(addend, static_cast<const char *>(what.a) + (i + j * what.lda) * size, what.type, count);
      // Skips a factor of 1: multiplying would change complex infinities.
      if (reads_c && !is_one(beta)) simd().scale(type, sums, beta, count);
      if (what.a != nullptr && !is_one(alpha)) simd().scale(type, addend, alpha, count);
      if (what.a != nullptr && reads_c)
        simd().add(type, sums, addend, count);
      else if (what.a != nullptr)
        std::memcpy(sums, addend, static_cast<std::size_t>(count * element_size(type)));
      else if (!reads_c)
        std::memset(sums, 0, static_cast<std::size_t>(count * element_size(type)));
      if (is_any(end)) finish_sums(end, what.type, sums, i, j, count);
      narrow(c, what.type, sums, count);
      if (++segments % segments_between_polls == 0 && space.is_stopped()) return SG_STATUS_CANCELLED;
    }
  return SG_STATUS_OK;
}

}  // namespace sg::cpu
