// SPDX-License-Identifier: Apache-2.0
// The gradients of attention in one command. Its views are whole operands, as one column each.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

#include "ops/attention.hpp"

namespace sg {

namespace ops {

// A missing result has no view. `of_o`: the strides of dO.
struct attention_backward : attention {
  enum : std::size_t { dq, dk, dv, scratch, q, k, v, dout, operands };
  head_strides of_dq, of_dk, of_dv;
  bool operator==(const attention_backward &) const = default;
  static const operation entry;
};

// Bytes of its scratch memory; `wants`: dQ, dK, dV.
std::int64_t scratch_of(const attention_backward &what, sg_dtype type, const bool (&wants)[3]);

}  // namespace ops

template <>
struct backend_kind<sg_backend_attention_backward> : kind_constant<SG_BACKEND_ATTENTION_BACKWARD> {};

}  // namespace sg
