// SPDX-License-Identifier: Apache-2.0
// The nodes of a backend's graph, with all that they point to.
#pragma once

#include <streamgemm/backend.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "devices/device.hpp"
#include "ops/backend_commands.hpp"
#include "run/objects/submission.hpp"

namespace sg {

// A device of a graph, and the graph's memory there.
struct graph_place {
  const device *on = nullptr;  // nullptr: the graph does not use it
  char *arena = nullptr;
};

class graph_nodes {
 public:
  using indices = std::vector<std::int32_t>;  // of nodes

  // Each returns the nodes after which what was added has been done. `before`: the nodes that it waits for. Throw
  // std::bad_alloc.
  // `where`: by device of the machine.
  indices add_batch(const std::vector<const submission *> &works, const device &on,
                    const indices &before);  // GEMMs, as one call
  indices add_program(const submission &work, const std::vector<graph_place> &where, const indices &before);

  // Valid until the next addition.
  const std::vector<sg_backend_node> &all();

 private:
  std::int32_t add(indices before, std::vector<const sg_backend_command *> calls, const device &on);

  struct node {
    const device *on;
    indices before;
    std::vector<const sg_backend_command *> calls;
  };
  std::deque<node> nodes_;
  std::deque<backend_commands> lowered_;
  std::vector<sg_backend_node> all_;
};

}  // namespace sg
