// SPDX-License-Identifier: Apache-2.0
#include "model/machine_model.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace sg {

namespace {

// The link from `from` to `to`; nullptr: unknown.
const found_device::peer *peer_named(const found_device &from, const found_device &to) noexcept {
  const auto found = std::find_if(from.peers.begin(), from.peers.end(),
                                  [&](const found_device::peer &each) { return each.name == to.name; });
  return found == from.peers.end() ? nullptr : &*found;
}

}  // namespace

const device_link *machine_model::link_between(device_index one, device_index other) const noexcept {
  const auto [first, second] = std::minmax(one, other);
  for (const device_link &link : links)
    if (link.first == first && link.second == second) return &link;
  return nullptr;
}

// One direction of one NVLink of generation 2 to 4 (NVIDIA's data sheets: 12 of an A100 carry 300 GB/s, 18 of an H100
// 450).
constexpr double assumed_nvlink_rate = 25e9;
// Both ways of all links of a host. Two and four H200 reached 148 to 172, two H100 of another host 140.
constexpr double assumed_host_sum = 150e9;

machine_model machine_of(std::vector<found_device> devices) {
  if (devices.empty() || devices.size() > most_devices)
    throw error(SG_STATUS_INVALID_ARGUMENT, "a machine of %zu devices; it has from 1 to %zu", devices.size(),
                most_devices);
  machine_model machine;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (std::size_t j = i + 1; j < devices.size(); ++j) {
      if (devices[i].name == devices[j].name)
        throw error(SG_STATUS_INVALID_ARGUMENT, "device \"%.64s\" is in a machine twice", devices[i].name.c_str());
      const found_device::peer *const there = peer_named(devices[i], devices[j]);
      const found_device::peer *const back = peer_named(devices[j], devices[i]);
      const found_device::peer *const known = there ? there : back;
      if (!known) continue;
      device_link link{device_index(i), device_index(j), known->link_class, known->links, known->bytes_per_second};
      if (link.bytes_per_second == 0 && back) link.bytes_per_second = back->bytes_per_second;
      machine.links.push_back(link);
    }
  }
  for (found_device &each : devices) machine.devices.push_back(std::move(each.model));
  if (machine.devices.size() > 1) {
    shared_limit &host = machine.shared.emplace_back();
    host.name = "host";
    host.sum = assumed_host_sum;
    for (std::size_t i = 0; i < machine.devices.size(); ++i) host.devices.push_back(device_index(i));
  }
  return machine;
}

std::int32_t workers_of(const machine_model &machine) noexcept {
  if (machine.staging_workers > 0) return machine.staging_workers;
  std::int32_t cores = 0;
  for (const host_node &each : machine.nodes) cores += each.cores;
  return std::min(most_workers_of_device * std::int32_t(machine.devices.size()), cores * 3 / 4);
}

void assume_rates(std::span<device_link> links) noexcept {
  for (device_link &link : links)
    if (link.bytes_per_second == 0 && link.link_class == SG_LINK_NVLINK)
      link.bytes_per_second = assumed_nvlink_rate * std::max(1, link.links);
}

}  // namespace sg
