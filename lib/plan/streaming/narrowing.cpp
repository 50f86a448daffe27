// SPDX-License-Identifier: Apache-2.0
#include "plan/streaming/narrowing.hpp"

#include "plan/gemm/cost.hpp"

namespace sg {

problem narrowed_if_staged(const problem &p, const device_model &model) {
  const bool staged = p.a.place == SG_MEMORY_PAGEABLE && p.b.place == SG_MEMORY_PAGEABLE;
  if (p.no_product || p.compute != SG_COMPUTE_BF16 || p.a.type != SG_DTYPE_F32 || !staged) return p;
  if (gemm_rate_of(model, SG_DTYPE_BF16, SG_COMPUTE_EXACT) <= 0) return p;
  problem narrowed = p;
  narrowed.narrowed = true;
  return bound_seconds(model, {&narrowed, 1}) <= bound_seconds(model, {&p, 1}) ? narrowed : p;
}

}  // namespace sg
