// SPDX-License-Identifier: Apache-2.0
// Where device models come from: the files of models/, which the build embeds, or a file of the user's.
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

// The model that `name` asks for, as JSON, with the memory size that it asks for. Throws failure: SG_STATUS_NO_DEVICE
// when there is none or its file cannot be read, SG_STATUS_INVALID_ARGUMENT when it is no model of a device with memory
// of its own.
std::string model_text(const device_name &name);

}  // namespace sg::sim
