// SPDX-License-Identifier: Apache-2.0
// A device model with measured figures, from an untrusted file.
#pragma once

#include <string>

#include "model/device_model.hpp"

namespace sg {

// The device name in calibrations: without a simulated device's options.
std::string calibrated_name(const std::string &device);

// `own` with the rates of `measured`; memory, units, lanes, tiles and types stay `own`'s. `device` is its name. Throws
// sg::error(SG_STATUS_INVALID_ARGUMENT) with the reason if the figures are for another device or implausible.
device_model with_measured(const device_model &own, const device_model &measured, const std::string &device);

}  // namespace sg
