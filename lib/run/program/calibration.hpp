// SPDX-License-Identifier: Apache-2.0
// Device models measured by `streamgemm calibrate`, loaded if SG_CALIBRATION requests them.
#pragma once

#include <string>

#include "devices/device.hpp"
#include "model/device_model.hpp"

namespace sg {

// The default file of a device's measured model: under $XDG_CACHE_HOME, or ~/.cache. Throws
// sg::error(SG_STATUS_INVALID_ARGUMENT) if neither is set.
std::string calibration_file(const std::string &device);

// The device's own model, with measured figures if SG_CALIBRATION requests them. An unusable file is ignored; the
// model's source "calibration" names the file and the reason.
device_model calibrated_model(const device &on);

}  // namespace sg
