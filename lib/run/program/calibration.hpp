// SPDX-License-Identifier: Apache-2.0
// Models measured by `streamgemm calibrate`, loaded if SG_CALIBRATION requests them.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "devices/device.hpp"
#include "model/machine_model.hpp"

namespace sg {

// The default file of the measured model of a device, or of a machine of several: under $XDG_CACHE_HOME, or ~/.cache.
// Throws sg::error(SG_STATUS_INVALID_ARGUMENT) if neither is set.
std::string calibration_file(std::span<const std::string> devices);

// `own`, the machine of these devices, with measured figures if SG_CALIBRATION requests them: those of a file of all
// devices, or else of each. An unusable file is ignored; the source "calibration" of the devices' models names the file
// and the reason.
machine_model calibrated(machine_model own, std::span<const std::shared_ptr<device>> devices);

}  // namespace sg
