// SPDX-License-Identifier: Apache-2.0
// Models of devices and machines with measured figures, from an untrusted file.
#pragma once

#include <span>
#include <string>

#include "model/machine_model.hpp"

namespace sg {

// The device name in calibrations: without a simulated device's options.
std::string calibrated_name(const std::string &device);

// `own` with the rates of `measured`; memory, units, lanes, tiles and types stay `own`'s. `device` is its name. Throws
// sg::error(SG_STATUS_INVALID_ARGUMENT) with the reason if the figures are for another device or implausible.
device_model with_measured(const device_model &own, const device_model &measured, const std::string &device);
// The same for a machine of devices with these names: the figures of each, the rates of the links between them, what
// their links to the host share, and the staging rates of the workers of all.
machine_model with_measured(const machine_model &own, const machine_model &measured,
                            std::span<const std::string> devices);

}  // namespace sg
