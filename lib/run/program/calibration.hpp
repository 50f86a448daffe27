// SPDX-License-Identifier: Apache-2.0
// Device models that `streamgemm calibrate` measured, where the process's owner asks for them.
#pragma once

#include <string>

#include "backend/device.hpp"
#include "plan/model/device_model.hpp"

namespace sg {

// The file that a device's measured model is kept in, unless it is named otherwise: under $XDG_CACHE_HOME, or ~/.cache.
// Throws sg::error(SG_STATUS_INVALID_ARGUMENT) when neither is known.
std::string calibration_file(const std::string &device);

// The device's own model, or with the figures measured on it when the variable SG_CALIBRATION asks for them. What
// cannot be used is passed over; the model's source "calibration" says which it was, and why.
device_model calibrated_model(const device &on);

}  // namespace sg
