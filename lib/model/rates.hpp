// SPDX-License-Identifier: Apache-2.0
// Rates of concurrent transfers in a machine: which limits each path crosses, and what each transfer gets of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/machine_model.hpp"

namespace sg {

// The limits of a machine's paths, by number: of each device's link, of the sets that share one, of each device's ports
// to its peers, and of all staging workers.
class machine_limits {
 public:
  using path = std::span<const std::uint16_t>;
  struct limit {
    std::string name;
    double bytes_per_second = 0;
  };

  explicit machine_limits(const machine_model &machine);

  const std::vector<limit> &all() const noexcept { return all_; }
  path in(device_index device) const noexcept { return in_[number_of(device)]; }
  path out(device_index device) const noexcept { return out_[number_of(device)]; }
  // Of a copy from one device's memory to another's. Over PCIe and through the host it crosses both links. A limit is
  // in the path as often as the bytes cross it.
  path peer(device_index from, device_index to) const noexcept { return edge(from, to).path; }
  double peer_rate(device_index from, device_index to) const noexcept { return edge(from, to).bytes_per_second; }
  bool peer_crosses_links(device_index from, device_index to) const noexcept { return edge(from, to).crosses_links; }
  // Of the workers of all devices; its rate, which grows with their number, is not in all(). Empty: none.
  path staging() const noexcept { return staging_; }

 private:
  struct peer_edge {
    std::vector<std::uint16_t> path;
    double bytes_per_second = 0;
    bool crosses_links = true;
  };

  // The limits of a set of devices that share one.
  struct shared_numbers {
    std::vector<std::uint16_t> in, out;
  };

  std::vector<std::uint16_t> add(const std::string &name, double bytes_per_second);
  peer_edge edge_between(const machine_model &machine, device_index from, device_index to) const;
  const peer_edge &edge(device_index from, device_index to) const noexcept {
    return edges_[number_of(from) * in_.size() + number_of(to)];
  }

  std::vector<limit> all_;
  std::vector<std::vector<std::uint16_t>> in_, out_, sends_, receives_;  // by device
  std::vector<shared_numbers> shared_;                                   // by number in the machine
  std::vector<peer_edge> edges_;                                         // by both devices
  std::vector<std::uint16_t> staging_;
};

struct flow {
  double ceiling = 0;  // bytes per second that it reaches by itself
  machine_limits::path path;
  double rate = 0;  // what it gets
};

// Max-min fairness: all flows grow equally until a flow has its ceiling, or one of its limits is used up; that flow
// keeps its rate and the others grow on. A flow that no limit of `bytes_per_second` holds back has its ceiling to the
// bit.
class flow_rates {
 public:
  void share(std::span<flow> flows, std::span<const double> bytes_per_second);

 private:
  std::vector<flow *> growing_;
  std::vector<double> left_;          // of each limit
  std::vector<std::uint32_t> users_;  // growing flows that cross it
};

}  // namespace sg
