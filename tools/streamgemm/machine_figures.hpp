// SPDX-License-Identifier: Apache-2.0
// The model of a machine with measured figures: what its devices share.
#pragma once

#include <string>
#include <vector>

#include "device_figures.hpp"

namespace sg::cli {

struct machine_figures {
  json machine;  // with the measured figures, except for those of each device
  json links;    // rates by devices
  json peers;    // rates by edge
};

// `device` names several. Staging threads have no virtual time.
machine_figures figures_of_machine(const std::string &device, bool virtual_time, const telling &tell);
void print_machine_figures(const machine_figures &figures, const std::vector<std::string> &devices);

}  // namespace sg::cli
