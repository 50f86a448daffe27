// SPDX-License-Identifier: Apache-2.0
// A model of a machine: its devices, and the links between them. A device's link to the host is part of its own model.
#pragma once

#include <streamgemm/types.h>

#include <cstdint>
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

  bool operator==(const device_link &) const = default;
};

struct machine_model {
  std::vector<device_model> devices;  // by device_index; at least one
  std::vector<device_link> links;     // at most one for each pair

  const device_model &device(device_index which) const noexcept { return devices[number_of(which)]; }
  // The link between two devices, in either order; nullptr: unknown, so copies pass through the host.
  const device_link *link_between(device_index one, device_index other) const noexcept;

  bool operator==(const machine_model &) const = default;
};

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
// the end with the lower index counts, except for a bandwidth that only the other one knows. Throws
// sg::error(SG_STATUS_INVALID_ARGUMENT) if there is no device, more than most_devices, or two of one name.
machine_model machine_of(std::vector<found_device> devices);

}  // namespace sg
