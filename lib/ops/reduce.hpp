// SPDX-License-Identifier: Apache-2.0
// Reduction: c = activation(beta * c + the sum of the items of `parts` + bias). Without parts c is scaled.
#pragma once

#include <cstdint>

#include "ops/epilogue.hpp"
#include "ops/gemm.hpp"
#include "ops/view.hpp"

namespace sg {

namespace ops {

struct reduce : epilogue {
  enum : std::size_t { c, parts };
  scalar_role beta = scalar_role::zero;
  static const operation entry;
};

}  // namespace ops

struct reduce_shape {
  std::int64_t m = 0, n = 0, parts = 0;
  sg_dtype part_type = SG_DTYPE_F32, out_type = SG_DTYPE_F32;
  bool reads_c = false;
};
reduce_shape shape_of_reduce(const buffer_list &buffers, const command &c);

kernel_cost reduce_cost(const device_model &model, const reduce_shape &reduce);
// Including the launch of a queued kernel.
double reduce_seconds(const device_model &model, const reduce_shape &reduce);

}  // namespace sg
