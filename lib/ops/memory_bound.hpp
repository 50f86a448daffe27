// SPDX-License-Identifier: Apache-2.0
// The cost of an operation that reads and writes each element once: its bytes at the memory's rate.
#pragma once

#include <algorithm>

#include "ops/operation.hpp"

namespace sg {

inline kernel_cost memory_bound_kernel(const device_model &model, double elements, sg_dtype type, int passes) {
  return with_memory(model, {0, 1, 0}, elements * double(size_of(type)) * passes);
}

// Of the elements of view 0. `passes`: how many matrices of its size are read or written.
inline command_cost memory_bound_cost(const device_model &model, const buffer_list &buffers, const command &command,
                                      int passes) {
  const view &result = command.views[0];
  const kernel_cost alone =
      memory_bound_kernel(model, double(result.rows) * double(result.cols), type_of(buffers, result), passes);
  command_cost cost;
  cost.amount = alone.seconds;
  cost.chip_share = alone.chip_share;
  cost.memory_share = alone.memory_share;
  cost.delay_idle = std::max(model.launch_latency, model.launch_gap);
  cost.delay_queued = model.launch_gap;
  return cost;
}

// Whether a view has the result's shape and type.
inline bool fits(const buffer_list &buffers, const view &x, const view &result) {
  return x.exists() && x.rows == result.rows && x.cols == result.cols && x.items == result.items &&
         type_of(buffers, x) == type_of(buffers, result);
}

}  // namespace sg
