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
  const auto devices = static_cast<int>(node_of_.size()), nodes = static_cast<int>(numbers.size());
  int before = 0;  // devices of earlier nodes
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const int up_to = before + static_cast<int>(std::count(node_of_.begin(), node_of_.end(), i));
    // The shares of all nodes add up to `of_all`, or to one each.
    const auto share = [&](int of_all) {
      const int more = std::max(0, of_all - nodes);
      return 1 + more * up_to / devices - more * before / devices;
    };
    const int workers = share(machine.staging_workers);
    nodes_.push_back(std::make_unique<stager>(workers, share(polling), move, cores_of_node(numbers[i], workers)));
    before = up_to;
  }
}

inflight_command *node_stagers::take(const job &of) const noexcept {
  for (const auto &each : nodes_)
    if (inflight_command *const taken = each->take(of)) return taken;
  return nullptr;
}

}  // namespace sg
