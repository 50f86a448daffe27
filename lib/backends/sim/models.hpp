// SPDX-License-Identifier: Apache-2.0
// Sources of the models of devices and machines: the files of models/, embedded by the build, or a file of the user's.
#pragma once

#include <span>
#include <string>

#include "device_name.hpp"

namespace sg::sim {

struct built_in_model {
  const char *name;
  const char *json;
};

std::span<const built_in_model> built_in_models();
std::span<const built_in_model> other_models();  // of devices that are not counted, and of machines

struct model_texts {
  std::string device;   // with its requested memory size
  std::string machine;  // that it is part of, with the models of all devices; "": none
};

// The number of devices of the machine that a model is; 0: it is one device. Throws failure.
std::size_t devices_of(const device_name &name);

// The model of `name` as JSON. Throws failure: SG_STATUS_NO_DEVICE if it does not exist or its file cannot be read,
// SG_STATUS_INVALID_ARGUMENT if it is not a model of a device with its own memory, or of a machine of such.
model_texts models_of(const device_name &name);

}  // namespace sg::sim
