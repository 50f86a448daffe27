// SPDX-License-Identifier: Apache-2.0
// Which scores a row of a block of an attention has, and which of its keys lengths, a causal mask and a window leave.
#pragma once

#include <streamgemm/backend.h>

#include <cstdint>

#ifdef __CUDACC__
#define SG_ON_DEVICE_TOO __host__ __device__
#else
#define SG_ON_DEVICE_TOO
#endif

namespace sg {
inline namespace common {

struct score_row {
  std::int64_t batch, head, query;
  std::int64_t first, end;  // columns of the block; the keys of those before and behind are hidden

  SG_ON_DEVICE_TOO std::int64_t index_in(const sg_backend_heads &x) const noexcept {
    return batch * x.batch + head * x.head + query * x.token;
  }
};

SG_ON_DEVICE_TOO inline std::int64_t clamped(std::int64_t x, std::int64_t least, std::int64_t most) noexcept {
  return x < least ? least : x > most ? most : x;
}

// Row r of the block. The command's own pointers to lengths are not used.
SG_ON_DEVICE_TOO inline score_row score_row_of(const sg_backend_score_mask &what, std::int64_t r,
                                               const std::int32_t *query_lengths,
                                               const std::int32_t *key_lengths) noexcept {
  const std::int64_t item = what.first_item + r / what.item_rows, row = what.first_row + r % what.item_rows;
  score_row x;
  x.batch = item / what.kv_heads;
  x.head = item % what.kv_heads * (what.heads / what.kv_heads) + what.first_head + row / what.queries;
  x.query = row % what.queries;
  const std::int64_t queries =
      query_lengths != nullptr ? clamped(query_lengths[x.batch], 0, what.queries) : what.queries;
  const std::int64_t keys = key_lengths != nullptr ? clamped(key_lengths[x.batch], 0, what.keys) : what.keys;
  std::int64_t first = 0, end = keys;
  if (what.mask != SG_MASK_NONE) {
    const std::int64_t limit = x.query + what.mask_offset + (what.mask == SG_MASK_CAUSAL_FROM_END ? keys - queries : 0);
    end = clamped(limit + 1, 0, keys);
    if (what.window > 0) first = clamped(limit + 1 - what.window, 0, keys);
  }
  if (x.query >= queries) end = 0;
  x.end = clamped(end - what.first_key, 0, what.cols);
  x.first = clamped(first - what.first_key, 0, x.end);
  return x;
}

}  // namespace common
}  // namespace sg
