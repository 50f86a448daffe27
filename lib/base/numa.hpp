// SPDX-License-Identifier: Apache-2.0
// NUMA nodes of the host, as the kernel lists them below /sys. Where it lists none, or refuses to place memory, nothing
// is bound.
#pragma once

#include <sched.h>

#include <string>

namespace sg {

// The cores of the node that this thread may use, for so many threads. Empty: the node is unknown, or has fewer cores
// than threads, and this thread may use cores of other nodes. `system`: /sys.
cpu_set_t cores_of_node(int node, int threads, const std::string &system = "/sys") noexcept;

// Restricts this thread to those of the cores that it may use by now. No effect if there is none.
void run_on(const cpu_set_t &cores) noexcept;

// While it exists, pages that this thread touches first are put on a node with room, if the range's own policy says
// nothing else.
class page_placement {
 public:
  static constexpr int interleaved = -2;  // over all nodes
  // `node`: the preferred one; negative: any, or `interleaved`.
  explicit page_placement(int node, const std::string &system = "/sys") noexcept;
  ~page_placement();
  page_placement(const page_placement &) = delete;
  page_placement &operator=(const page_placement &) = delete;

 private:
  static constexpr unsigned long most_nodes = 1024;
  struct node_set {
    unsigned long bits[most_nodes / (8 * sizeof(unsigned long))] = {};
    void add(int node) noexcept;
  };
  bool is_set_ = false;
  int mode_before_ = 0;
  node_set nodes_before_;
};

}  // namespace sg
