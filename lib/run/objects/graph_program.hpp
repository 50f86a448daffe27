// SPDX-License-Identifier: Apache-2.0
// The immutable program of a graph: the recorded submissions, and their order where the device runs them. A changed
// graph gets a new program.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "devices/device.hpp"
#include "run/objects/submission_list.hpp"
#include "run/order/tracker.hpp"
#include "run/program/device_graph.hpp"

namespace sg {

struct graph_program final : recorded_graph, submission_list {
  explicit graph_program(std::vector<submission> recorded);

  std::size_t size() const noexcept override { return works.size(); }
  const submission &at(std::size_t index) const noexcept override { return works[index]; }
  binding operands(std::size_t index) const override { return works[index].operands.copy(); }
  std::span<const access> accesses(std::size_t index, std::vector<access> &) const override {
    return works[index].accesses;
  }

  // Copies of the graph's: neither this object nor they refer to the graph or its runs.
  std::vector<submission> works;
  // Only with `device`: the command that launches it, and the accesses of all submissions, in few ranges.
  std::shared_ptr<const program> launch;
  std::vector<access> accesses_of_all;

  std::uint64_t device_bits_of_all() const noexcept;  // bit i for device i; of markers alone the first device's
  // Makes one graph of the submissions, if their devices support it, with workspaces from the memory of these;
  // `memory`: by device of the machine, nullptr for others. Throws std::bad_alloc.
  void put_on(const std::vector<arena_pool *> &memory);
};

// For each submission, its predecessors by streams and memory, without transitive ones.
std::vector<std::vector<std::int32_t>> order_of(const std::vector<submission> &works);

}  // namespace sg
