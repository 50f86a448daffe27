// SPDX-License-Identifier: Apache-2.0
// What a graph's runs do: the recorded submissions, worked out once. It does not change; a graph that changes gets
// another.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/device.hpp"
#include "run/objects/submission.hpp"
#include "run/order/tracker.hpp"
#include "run/program/device_graph.hpp"

namespace sg {

struct graph_program : recorded_graph {
  explicit graph_program(std::vector<submission> recorded);

  // Copies of the graph's: neither it nor they refer to the graph or to one of its runs.
  std::vector<submission> works;
  std::vector<access> accesses;  // of all works, in few ranges; with `device` only

  // Gives the works to the device as one graph, where it takes them. Throws std::bad_alloc.
  void put_on(const sg::device &on);
};

}  // namespace sg
