// SPDX-License-Identifier: Apache-2.0
// Attention in one kernel. Its views are whole operands, as one column from the first element to the end of the last.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

// Elements from one batch, head and token to the next; the elements of a token are contiguous.
struct head_strides {
  std::int64_t batch = 0, head = 0, token = 0;
  bool operator==(const head_strides &) const = default;
};

namespace ops {

struct attention {
  enum : std::size_t { o, q, k, v, operands };
  std::int64_t batch = 1, heads = 1, kv_heads = 1;  // heads is a multiple of kv_heads
  std::int64_t queries = 0, keys = 0, width = 0, value_width = 0;
  head_strides of_q, of_k, of_v, of_o;
  bool causal = false;
  std::int64_t mask_offset = 0;  // query i has the keys j <= i + mask_offset
  bool operator==(const attention &) const = default;
  static const operation entry;
};

// Multiplications and additions of an attention; with a causal mask of the pairs that it leaves.
double flops_of(const attention &what) noexcept;
// The name, whether it is causal, and the sizes.
std::string text_of(const attention &what, const char *name);

}  // namespace ops

template <>
struct backend_kind<sg_backend_attention> : kind_constant<SG_BACKEND_ATTENTION> {};

}  // namespace sg
