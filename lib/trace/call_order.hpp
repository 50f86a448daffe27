// SPDX-License-Identifier: Apache-2.0
// The order of calls on a device whose streams share queues: one that waits holds up all behind it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/device_model.hpp"
#include "plan/schedule/schedule.hpp"
#include "trace/history.hpp"

namespace sg::trace {

// A job of a stream.
struct device_call {
  std::shared_ptr<const schedule> work;
  std::size_t stream = 0;  // from 0, without gaps
  int stage = 0;           // 0: copy to the device; 1: kernels; 2: copy from it
};

// Whether the calls, given in the order of their submission, take less time on the model chunk by chunk (of each stream
// a copy in, kernels, a copy out), or by kind (all copies in, then kernels, then copies out). Empty: hardly any, or
// they are of one stream.
std::optional<advice> better_call_order(std::vector<device_call> calls, const device_model &model);

}  // namespace sg::trace
