// SPDX-License-Identifier: Apache-2.0
// The staging workers of a context, by the NUMA nodes of its devices: they read and write the slots of near devices.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "model/machine_model.hpp"
#include "run/dispatch/stager.hpp"

namespace sg {

class node_stagers {
 public:
  // `polling`: as in stager. Both numbers are of all nodes, which share them by their devices; each has at least one.
  // Throws std::bad_alloc.
  node_stagers(const machine_model &machine, int polling, const std::function<void(inflight_command &)> &move);

  std::size_t size() const noexcept { return nodes_.size(); }
  stager &node(std::size_t number) const noexcept { return *nodes_[number]; }
  std::size_t node_of(device_index device) const noexcept { return node_of_[number_of(device)]; }
  // Takes the next queued command of a job, for a thread that waits for it; nullptr: none is queued.
  inflight_command *take(const job &of) const noexcept;

 private:
  std::vector<std::unique_ptr<stager>> nodes_;
  std::vector<std::size_t> node_of_;  // by device
};

}  // namespace sg
