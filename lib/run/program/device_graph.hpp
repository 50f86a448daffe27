// SPDX-License-Identifier: Apache-2.0
// A graph of the backend, and the properties of a recorded graph that its jobs need.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "devices/device.hpp"
#include "run/memory/arena_pool.hpp"
#include "run/program/program.hpp"

namespace sg {

class device_graph {
 public:
  // `arenas`: the memory of its workspaces, on each of its devices.
  device_graph(const device &on, sg_backend_graph *made, std::vector<pooled_arena> arenas) noexcept
      : on_(on), made_(made), arenas_(std::move(arenas)) {}
  ~device_graph() {
    on_.ops().graph_destroy(made_);
    // Commands of a device may wait for one that is lost, and still write.
    const auto is_lost = [](const pooled_arena &each) { return each.pool()->on().status() != SG_STATUS_OK; };
    if (!std::any_of(arenas_.begin(), arenas_.end(), is_lost)) return;
    for (pooled_arena &each : arenas_) each.abandon();
  }
  device_graph(const device_graph &) = delete;
  device_graph &operator=(const device_graph &) = delete;
  sg_backend_graph *get() const noexcept { return made_; }

 private:
  const device &on_;
  sg_backend_graph *const made_;
  std::vector<pooled_arena> arenas_;
};

class user_release;
using user_releases = std::vector<std::shared_ptr<user_release>>;

struct recorded_graph {
  // Adds a submission; nullptr: a marker. Then, once: keeps the totals.
  void count(const program *work) noexcept {
    ++commands;
    if (!work) return;
    flops += work->schedule->flops;
    bytes_in += static_cast<std::uint64_t>(work->schedule->bytes_in);
    bytes_out += static_cast<std::uint64_t>(work->schedule->bytes_out);
    bytes_peer += static_cast<std::uint64_t>(work->schedule->bytes_peer);
    device_bits |= work->device_bits();
  }
  void keep(const std::shared_ptr<user_release> &used) {
    if (!used) return;
    if (!kept) kept = std::make_shared<user_releases>();
    kept->push_back(used);
  }
  void keep_totals() {
    auto alone = std::make_shared<recorded_graph>();
    alone->commands = commands;
    alone->flops = flops;
    alone->bytes_in = bytes_in;
    alone->bytes_out = bytes_out;
    alone->bytes_peer = bytes_peer;
    alone->device_bits = device_bits;
    totals = std::move(alone);
  }

  std::int32_t commands = 0;
  double flops = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;  // over the link
  std::uint64_t bytes_peer = 0, device_bits = 0;
  // The figures above alone. A completed job keeps them instead of the graph, whose submissions may refer to the stream
  // whose latest job it is: a stream refers to its latest job.
  std::shared_ptr<const recorded_graph> totals;
  std::shared_ptr<user_releases> kept;         // what functions of submissions and stages use; empty: nothing
  std::unique_ptr<const device_graph> device;  // nullptr: the commands are replayed one by one
};

}  // namespace sg
