// SPDX-License-Identifier: Apache-2.0
// Copies of weights to one device, or to several, which then share what comes from the host.
#include <algorithm>

#include "base/checked.hpp"
#include "run/pipeline/batch.hpp"

namespace sg {

namespace {

constexpr std::int64_t min_part = 64 << 10;  // bytes of what a device copies from the host for others

// The buffers of shared weights: any memory (batch_work::any_memory), then those of each device.
std::uint32_t buffer_on(std::size_t device, std::size_t stage, std::size_t stages) noexcept {
  return static_cast<std::uint32_t>(1 + device * stages + stage);
}

}  // namespace

bool batch_maker::are_linked(const std::vector<device_index> &devices) const {
  for (const device_index one : devices)
    for (const device_index other : devices)
      if (one != other) {
        const device_link *const link = machine_.link_between(one, other);
        if (!link || link->link_class == SG_LINK_HOST) return false;
      }
  return true;
}

void batch_maker::add_weights(const pipeline_stage &stage, const std::vector<device_index> &devices,
                              const std::vector<std::uint32_t> &buffers, work_list &to) {
  const auto most = static_cast<std::int64_t>(devices.size());
  const std::int64_t parts = std::clamp<std::int64_t>(stage.weights_bytes / min_part, 1, most);
  const auto space_of = [&](std::size_t i) { return memory_space::of_device(devices[i]); };
  const std::string label = "weights of " + stage.name;
  for (std::size_t w = 0; w < stage.weights.size(); ++w) {
    const pipeline_weight &weight = stage.weights[w];
    if (weight.in_place) continue;
    const std::int64_t begin = stage.weight_addresses[w] - stage.weights_begin;
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto edge = [&](std::int64_t of) {
        const std::int64_t bytes = of == parts ? stage.weights_bytes : round_up(stage.weights_bytes / parts * of, 256);
        return std::clamp(bytes, begin, begin + weight.bytes);
      };
      const std::int64_t first = edge(part), bytes = edge(part + 1) - first;
      if (bytes == 0) continue;
      // Which device copies a part changes from stage to stage, for stages with few parts.
      const auto from = static_cast<std::size_t>((part + stage.index) % most);
      add_copy({buffers[from], offset_of(first)}, space_of(from),
               {batch_work::any_memory, weight.data + (first - begin)}, weight.space, bytes, label,
               batch_role::transfer_in, to);
      for (std::size_t i = 0; i < devices.size(); ++i)
        if (i != from)
          add_copy({buffers[i], offset_of(first)}, space_of(i), {buffers[from], offset_of(first)}, space_of(from),
                   bytes, label, batch_role::transfer_between_devices, to);
    }
  }
}

std::shared_ptr<const batch_program> batch_maker::weights(const pipeline_memory &memory,
                                                          const std::vector<device_index> &to, bool streamed) {
  work_list made;
  std::vector<std::size_t> stage_ends;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const pipeline_stage &stage = stages_[s];
    if (streamed ? stage.is_streamed() : memory.devices.at(to[0]).resident[s] != nullptr) {
      std::vector<std::uint32_t> buffers;
      for (std::size_t i = 0; i < to.size(); ++i) buffers.push_back(buffer_on(i, s, stages_.size()));
      for (std::size_t i = 0; i < to.size() && streamed; ++i)
        add_taking(to[i], {{buffers[i], memory.devices.at(to[i]).sizes.weight_buffer_bytes}}, batch_role::transfer_in,
                   made);
      if (are_linked(to))
        add_weights(stage, to, buffers, made);
      else
        for (std::size_t i = 0; i < to.size(); ++i) add_weights(stage, {to[i]}, {buffers[i]}, made);
    }
    stage_ends.push_back(made.size());
  }
  const auto program = std::make_shared<batch_program>(std::move(made), std::move(stage_ends));
  for (const pipeline_stage &stage : stages_) program->keep(stage.kept);
  return program;
}

batch_addresses batch_maker::weight_addresses(const pipeline_memory &memory, const std::vector<device_index> &to,
                                              const std::vector<std::int64_t> &turns) const {
  batch_addresses made(1 + to.size() * stages_.size(), nullptr);
  for (std::size_t i = 0; i < to.size(); ++i)
    for (std::size_t s = 0; s < stages_.size(); ++s)
      made[buffer_on(i, s, stages_.size())] = memory.devices.at(to[i]).weights_of(stages_[s], turns[i]);
  return made;
}

}  // namespace sg
