// SPDX-License-Identifier: Apache-2.0
// A device model with figures that were measured, from a file that is not to be trusted.
#pragma once

#include <string>

#include "plan/model/device_model.hpp"

namespace sg {

// The name that a device is measured under: without a simulated device's options.
std::string calibrated_name(const std::string &device);

// `own` with the rates of `measured`; what a device has (memory, units, lanes, tiles, types) stays its own. `device` is
// its name. Throws sg::error(SG_STATUS_INVALID_ARGUMENT) with the reason when the figures are not this device's, or are
// beyond belief.
device_model with_measured(const device_model &own, const device_model &measured, const std::string &device);

}  // namespace sg
