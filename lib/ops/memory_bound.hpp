// SPDX-License-Identifier: Apache-2.0
// The cost of an operation that reads and writes each element once: its bytes at the memory's rate.
#pragma once

#include <algorithm>

#include "ops/operation.hpp"

namespace sg {

inline kernel_cost memory_bound_kernel(const device_model &model, double bytes) {
  return with_memory(model, {0, 1, 0}, bytes);
}

// Of each view at most an element for each one of the result, view 0.
inline double bytes_accessed(const buffer_list &buffers, const command &command) {
  const view &result = command.views[0];
  double bytes = 0;
  for (const view &each : command.views)
    if (each.exists())
      bytes += double(each.items) *
               std::min(double(each.rows) * double(each.cols), double(result.rows) * double(result.cols)) *
               double(size_of(type_of(buffers, each)));
  return bytes;
}

inline command_cost cost_of_kernel(const device_model &model, const kernel_cost &alone) {
  command_cost cost;
  cost.amount = alone.seconds;
  cost.chip_share = alone.chip_share;
  cost.memory_share = alone.memory_share;
  cost.delay_idle = std::max(model.launch_latency, model.launch_gap);
  cost.delay_queued = model.launch_gap;
  return cost;
}
inline command_cost memory_bound_cost(const device_model &model, double bytes) {
  return cost_of_kernel(model, memory_bound_kernel(model, bytes));
}
inline command_cost memory_bound_cost(const device_model &model, const buffer_list &buffers, const command &command) {
  return memory_bound_cost(model, bytes_accessed(buffers, command));
}

// Whether a view has the result's shape and type.
inline bool fits(const buffer_list &buffers, const view &x, const view &result) {
  return x.exists() && x.rows == result.rows && x.cols == result.cols && x.items == result.items &&
         type_of(buffers, x) == type_of(buffers, result);
}

}  // namespace sg
