// SPDX-License-Identifier: Apache-2.0
// The masks of an attention, on a block of its scores: a bias is added, hidden keys get minus infinity. The scores are
// one matrix, a column of keys for each row of the block; the other views are whole operands, as one column each.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

#include "ops/attention.hpp"
#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

// The rows of a block are those of sg_backend_score_mask.
struct score_mask {
  enum : std::size_t { scores, bias, visible, query_lengths, key_lengths };
  std::int64_t heads = 1, kv_heads = 1, queries = 0, keys = 0;
  head_strides of_bias, of_visible;
  sg_mask mask = SG_MASK_NONE;
  std::int64_t mask_offset = 0, window = 0;
  std::int64_t item_rows = 0, first_item = 0, first_row = 0, first_head = 0, first_key = 0;
  bool operator==(const score_mask &) const = default;
  static const operation entry;
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_score_mask> : kind_constant<SG_BACKEND_SCORE_MASK> {};

}  // namespace sg
