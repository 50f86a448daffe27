// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/streaming/downcast.hpp"

#include "plan/gemm/resident/cost.hpp"

namespace sg {

problem downcast_if_staged(const problem &p, const device_model &model) {
  const bool staged = p.a.space == SG_MEMORY_PAGEABLE && p.b.space == SG_MEMORY_PAGEABLE;
  if (p.no_multiply || p.compute != SG_COMPUTE_BF16 || p.a.type != SG_DTYPE_F32 || !staged) return p;
  if (gemm_rate_of(model, SG_DTYPE_BF16, SG_COMPUTE_EXACT) <= 0) return p;
  problem rounded = p;
  rounded.downcast_to_bf16 = true;
  return bound_seconds(model, {&rounded, 1}) <= bound_seconds(model, {&p, 1}) ? rounded : p;
}

}  // namespace sg
