// SPDX-License-Identifier: Apache-2.0
// A model of a machine: its devices, the links between them, and the limits that their links to the host share. A
// device's own link to the host is part of its own model.
#pragma once

#include <streamgemm/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/device_index.hpp"
#include "model/device_model.hpp"

namespace sg {

// A link between two devices, used by both directions, not shared with other devices.
struct device_link {
  device_index first{}, second{};  // first < second
  sg_link_class link_class = SG_LINK_UNKNOWN;
  std::int32_t links = 0;       // parallel ones; 0: unknown, or SG_LINK_HOST
  double bytes_per_second = 0;  // of all in sum, in each direction; 0: unknown
  std::string reason;           // why copies cross the links to the host; "": unknown, or they do not

  bool operator==(const device_link &) const = default;
};

// Devices whose links to the host share a path: a switch, a socket, the host. Two sets are nested or disjoint.
struct shared_limit {
  std::string name;
  std::vector<device_index> devices;  // ascending
  double in = 0, out = 0, sum = 0;    // bytes per second to the devices, from them, both; 0: unknown

  bool operator==(const shared_limit &) const = default;
};

// Cores, and the devices that are closest to them.
struct host_node {
  std::int32_t cores = 0;
  std::vector<device_index> devices;

  bool operator==(const host_node &) const = default;
};

struct machine_model {
  std::vector<device_model> devices;  // by device_index; at least one
  std::vector<device_link> links;     // at most one for each pair
  std::vector<shared_limit> shared;
  std::vector<host_node> nodes;
  std::vector<staging_rate> staging;  // of the workers of all devices; empty: each device has its own rates
  std::int32_t staging_workers = 0;   // of all devices, of a context; 0: a part of the nodes' cores
  std::string name;

  const device_model &device(device_index which) const noexcept { return devices[number_of(which)]; }
  // The link between two devices, in either order; nullptr: unknown, so copies pass through the host.
  const device_link *link_between(device_index one, device_index other) const noexcept;

  bool operator==(const machine_model &) const = default;
};

// Reads a machine from JSON (docs/device-model.md, "machines"). Throws sg::error(SG_STATUS_INVALID_ARGUMENT) that names
// the key that is missing, unknown or out of range.
machine_model parse_machine_model(const std::string &json);
// The machine in the form that parse_machine_model reads.
std::string machine_text(const machine_model &machine);

// A device as discovered: its model, and its links by the names of their other devices.
struct found_device {
  struct peer {
    std::string name;
    sg_link_class link_class = SG_LINK_UNKNOWN;
    std::int32_t links = 0;
    double bytes_per_second = 0;
  };
  std::string name;
  device_model model;
  std::vector<peer> peers;
};

// The machine of these devices, in their order. Links to other devices are ignored; if the two ends of a link differ,
// the end with the lower index counts, except for a bandwidth that only the other one knows. What the links of several
// devices to the host share is an assumption (docs/device-model.md). Throws
// sg::error(SG_STATUS_INVALID_ARGUMENT) if there is no device, more than most_devices, or two of one name.
machine_model machine_of(std::vector<found_device> devices);

// The staging workers of all devices: at most most_workers_of_device for each, and a quarter of the cores stays the
// application's. 0: unknown.
std::int32_t workers_of(const machine_model &machine) noexcept;
inline constexpr std::int32_t most_workers_of_device = 8;

// Gives NVLinks of an unknown rate the least that they have: a link of rate 0 is never used.
void assume_rates(std::span<device_link> links) noexcept;

}  // namespace sg
