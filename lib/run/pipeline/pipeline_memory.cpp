// SPDX-License-Identifier: Apache-2.0
// The buffers of a pipeline.
#include <algorithm>

#include "base/checked.hpp"
#include "run/pipeline/pipeline_plan.hpp"

namespace sg {

std::int64_t pipeline_choice::bytes_of(const device_sizes &sizes) const {
  const auto of = [](std::int64_t count, std::int64_t bytes) {
    return checked_mul(count, bytes, "device memory of the pipeline");
  };
  return checked_add(checked_add(of(depth, sizes.batch.total()), of(weight_buffers, sizes.weight_buffer_bytes), ""),
                     sizes.resident_bytes, "device memory of the pipeline");
}

bool pipeline_choice::has(const pipeline_stage &stage, device_index device) const noexcept {
  return std::any_of(replicas.begin(), replicas.end(),
                     [&](const placement &each) { return each[static_cast<std::size_t>(stage.index)] == device; });
}

pipeline_memory make_memory(const pipeline_choice &choice, const std::deque<pipeline_stage> &stages,
                            const std::function<char *(device_index, std::int64_t bytes)> &take) {
  pipeline_memory made;
  for (const auto &[device, sizes] : choice.devices) {
    pipeline_memory::of_device &there = made.devices[device];
    there.sizes = sizes;
    for (std::int32_t i = 0; i < choice.depth; ++i)
      there.batches.push_back(sizes.batch.at(take(device, sizes.batch.total())));
    for (std::int32_t i = 0; i < choice.weight_buffers && sizes.streamed_stages > 0; ++i)
      there.weight_buffers.push_back(take(device, sizes.weight_buffer_bytes));
    for (const pipeline_stage &each : stages) {
      const bool is_there = each.weights_bytes > 0 && !each.is_streamed() && choice.has(each, device);
      there.resident.push_back(is_there ? take(device, each.weights_bytes) : nullptr);
    }
  }
  return made;
}

}  // namespace sg
