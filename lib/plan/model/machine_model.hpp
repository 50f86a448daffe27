// SPDX-License-Identifier: Apache-2.0
// A model of a machine: its devices, and the links between them. A device's link to the host is part of its own model.
#pragma once

#include <streamgemm/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/device_index.hpp"
#include "plan/model/device_model.hpp"

namespace sg {

// A connection between two devices, which both directions have to themselves.
struct device_link {
  device_index first{}, second{};  // first < second
  sg_link_class link_class = SG_LINK_UNKNOWN;
  std::int32_t links = 0;       // parallel ones; 0: unknown, or SG_LINK_HOST
  double bytes_per_second = 0;  // of all together, in each direction; 0: unknown

  bool operator==(const device_link &) const = default;
};

struct machine_model {
  std::vector<device_model> devices;  // by device_index; at least one
  std::vector<device_link> links;     // at most one for each pair

  const device_model &device(device_index which) const noexcept { return devices[number_of(which)]; }
  // The connection between two devices, in either order; nullptr: none is known, so that data passes through the host.
  const device_link *link_between(device_index one, device_index other) const noexcept;

  bool operator==(const machine_model &) const = default;
};

// A device as it is found: its model, and its connections by the names of the devices at their other ends.
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

// The machine of these devices, in their order. Connections to other devices are left out; where the ends of one
// differ, the end with the lower index counts, but for a bandwidth that only the other one knows. Throws
// sg::error(SG_STATUS_INVALID_ARGUMENT) when there is no device, more than most_devices, or two of one name.
machine_model machine_of(std::vector<found_device> devices);

}  // namespace sg
