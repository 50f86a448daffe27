// SPDX-License-Identifier: Apache-2.0
#include "run/dispatch/node_stagers.hpp"

#include <algorithm>

#include "base/numa.hpp"

namespace sg {

node_stagers::node_stagers(const machine_model &machine, int polling,
                           const std::function<void(inflight_command &)> &move) {
  std::vector<int> numbers;
  for (const device_model &each : machine.devices) {
    const auto known = std::find(numbers.begin(), numbers.end(), each.numa_node);
    node_of_.push_back(static_cast<std::size_t>(known - numbers.begin()));
    if (known == numbers.end()) numbers.push_back(each.numa_node);
  }
  const auto devices = static_cast<int>(node_of_.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto own = static_cast<int>(std::count(node_of_.begin(), node_of_.end(), i));
    const auto share = [&](int of_all) { return (of_all * own + devices - 1) / devices; };
    nodes_.push_back(std::make_unique<stager>(std::max(1, share(machine.staging_workers)), share(polling), move,
                                              cores_of_node(numbers[i])));
  }
}

inflight_command *node_stagers::take(const job &of) const noexcept {
  for (const auto &each : nodes_)
    if (inflight_command *const taken = each->take(of)) return taken;
  return nullptr;
}

}  // namespace sg
