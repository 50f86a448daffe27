// SPDX-License-Identifier: Apache-2.0
#include "model/rates.hpp"

#include <algorithm>
#include <cmath>

namespace sg {

namespace {

void append(std::vector<std::uint16_t> &to, const std::vector<std::uint16_t> &more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

machine_limits::machine_limits(const machine_model &machine)
    : in_(machine.devices.size()), out_(in_), sends_(in_), receives_(in_) {
  const std::size_t count = machine.devices.size();
  std::vector<double> port(count, 0);
  for (const device_link &link : machine.links)
    if (link.link_class == SG_LINK_NVLINK || link.link_class == SG_LINK_UNKNOWN)
      for (const device_index end : {link.first, link.second})
        port[number_of(end)] = std::max(port[number_of(end)], link.bytes_per_second);
  for (std::size_t d = 0; d < count; ++d) {
    const device_model &m = machine.devices[d];
    if (m.unified_memory) continue;
    const std::string name = "device " + std::to_string(d);
    in_[d] = add(name + " in", m.link_in);
    out_[d] = add(name + " out", m.link_out);
    sends_[d] = add(name + " sends", port[d]);
    receives_[d] = add(name + " receives", port[d]);
  }
  for (const shared_limit &set : machine.shared) {
    shared_numbers numbers{add(set.name + " in", set.in), add(set.name + " out", set.out)};
    const std::vector<std::uint16_t> both = add(set.name + " in and out", set.sum);
    append(numbers.in, both);
    append(numbers.out, both);
    shared_.push_back(std::move(numbers));
  }
  for (std::size_t from = 0; from < count; ++from)
    for (std::size_t to = 0; to < count; ++to)
      edges_.push_back(from == to ? peer_edge{} : edge_between(machine, device_index(from), device_index(to)));
  for (std::size_t i = 0; i < shared_.size(); ++i)
    for (const device_index each : machine.shared[i].devices) {
      append(in_[number_of(each)], shared_[i].in);
      append(out_[number_of(each)], shared_[i].out);
    }
  if (!machine.staging.empty()) staging_.push_back(std::uint16_t(all_.size()));
}

// Without a known rate there is no limit.
std::vector<std::uint16_t> machine_limits::add(const std::string &name, double bytes_per_second) {
  if (bytes_per_second <= 0) return {};
  all_.push_back({name, bytes_per_second});
  return {std::uint16_t(all_.size() - 1)};
}

// Before the shared limits join the paths of the devices.
machine_limits::peer_edge machine_limits::edge_between(const machine_model &machine, device_index from,
                                                       device_index to) const {
  const device_link *const link = machine.link_between(from, to);
  const sg_link_class link_class = link ? link->link_class : SG_LINK_HOST;
  const double rate = link ? link->bytes_per_second : 0;
  peer_edge made;
  if (rate > 0 && (link_class == SG_LINK_NVLINK || link_class == SG_LINK_UNKNOWN)) {
    made.bytes_per_second = rate;
    made.crosses_links = false;
    append(made.path, sends_[number_of(from)]);
    append(made.path, receives_[number_of(to)]);
    return made;
  }
  const double over_links = std::min(machine.device(from).link_out, machine.device(to).link_in);
  made.bytes_per_second = rate > 0 ? std::min(rate, over_links) : over_links;
  append(made.path, out_[number_of(from)]);
  append(made.path, in_[number_of(to)]);
  // Peers of one switch do not leave it; a copy through the host's memory passes every set.
  for (std::size_t i = 0; i < shared_.size(); ++i) {
    const std::vector<device_index> &set = machine.shared[i].devices;
    const bool has_from = std::find(set.begin(), set.end(), from) != set.end();
    const bool has_to = std::find(set.begin(), set.end(), to) != set.end();
    if (link_class == SG_LINK_PCIE && has_from && has_to) continue;
    if (has_from) append(made.path, shared_[i].out);
    if (has_to) append(made.path, shared_[i].in);
  }
  return made;
}

void flow_rates::share(std::span<flow> flows, std::span<const double> bytes_per_second) {
  // A ceiling within rounding of what a limit leaves counts as reached first.
  constexpr double rounding = 1 + 1e-12;
  left_.assign(bytes_per_second.begin(), bytes_per_second.end());
  users_.assign(left_.size(), 0);
  growing_.clear();
  for (flow &each : flows) {
    growing_.push_back(&each);
    for (const std::uint16_t limit : each.path) ++users_[limit];
  }
  while (!growing_.empty()) {
    double level = HUGE_VAL;  // at which the next limit is used up
    std::size_t tightest = left_.size();
    for (std::size_t i = 0; i < left_.size(); ++i)
      if (users_[i] > 0 && left_[i] / users_[i] < level) level = left_[i] / users_[i], tightest = i;
    const auto has_ceiling = [&](const flow *f) { return f->ceiling <= level * rounding; };
    const bool by_ceiling = std::any_of(growing_.begin(), growing_.end(), has_ceiling);
    std::erase_if(growing_, [&](flow *f) {
      const auto crosses = [&] { return std::find(f->path.begin(), f->path.end(), tightest) != f->path.end(); };
      if (by_ceiling ? !has_ceiling(f) : !crosses()) return false;
      f->rate = by_ceiling ? f->ceiling : level;
      for (const std::uint16_t limit : f->path) {
        left_[limit] = std::max(0.0, left_[limit] - f->rate);
        --users_[limit];
      }
      return true;
    });
  }
}

}  // namespace sg
