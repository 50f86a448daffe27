// SPDX-License-Identifier: Apache-2.0
// The queues of devices on which all streams share one for each engine (device_model::queues). Commands leave a
// queue in the order of the schedule: one that waits holds up all behind it. Where kernels run
// beside each other, the device signals the completion of those that were queued one behind the other only when it has
// completed all of them, and copies wait for that signal.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/device_model.hpp"
#include "ops/command.hpp"

namespace sg {

class shared_queues {
 public:
  // `model_of(lane)`: the model of its device.
  template <class ModelOf>
  shared_queues(const std::vector<command> &commands, std::size_t devices, ModelOf &&model_of)
      : queue_of_(commands.size(), none), burst_of_(commands.size(), none), queues_(devices * queues_of_device) {
    std::vector<std::uint32_t> open(devices, none);  // burst of the device's last command
    for (std::uint32_t i = 0; i < commands.size(); ++i) {
      const lane where = commands[i].where;
      const device_model &model = model_of(where);
      if (!are_shared(model.queues) || !in_order(where)) continue;
      const std::size_t device = number_of(where.device);
      const bool computes = where.kind == lane_kind::compute;
      const bool has_own_engine = where.kind == lane_kind::copy_out && model.copy_engines > 1;
      queue_of_[i] = std::uint32_t(device * queues_of_device + (computes ? 2 : has_own_engine ? 1 : 0));
      queues_[queue_of_[i]].push_back(i);
      if (!computes) {
        open[device] = none;
      } else if (model.queues == stream_queues::shared) {
        if (open[device] == none) {
          open[device] = std::uint32_t(bursts_.size());
          bursts_.emplace_back();
        }
        burst_of_[i] = open[device];
        bursts_[open[device]].kernels.push_back(i);
        ++bursts_[open[device]].running;
      }
    }
    heads_.resize(queues_.size(), 0);
  }

  // Whether the command is the first of its queue.
  bool is_first(std::uint32_t i) const {
    return queue_of_[i] == none || queues_[queue_of_[i]][heads_[queue_of_[i]]] == i;
  }
  void start(std::uint32_t i) {
    if (queue_of_[i] != none) ++heads_[queue_of_[i]];
  }

  // Whether a dependent waits for the signal of the whole burst of the kernel.
  bool waits_for_burst(std::uint32_t kernel, lane dependent) const {
    return burst_of_[kernel] != none && dependent.kind != lane_kind::compute;
  }
  // The kernels that the device signals now that this one has completed.
  std::span<const std::uint32_t> complete(std::uint32_t kernel) {
    if (burst_of_[kernel] == none) return {};
    burst &own = bursts_[burst_of_[kernel]];
    return --own.running == 0 ? std::span<const std::uint32_t>(own.kernels) : std::span<const std::uint32_t>();
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  static constexpr std::size_t queues_of_device = 3;  // copies in or of both directions, copies out, kernels
  struct burst {
    std::vector<std::uint32_t> kernels;
    std::size_t running = 0;
  };

  std::vector<std::uint32_t> queue_of_, burst_of_;  // by command
  std::vector<std::vector<std::uint32_t>> queues_;
  std::vector<std::size_t> heads_;
  std::vector<burst> bursts_;
};

}  // namespace sg
