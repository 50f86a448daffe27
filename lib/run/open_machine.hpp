// SPDX-License-Identifier: Apache-2.0
// Opens the devices of a context, and makes the model of their machine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "devices/device.hpp"
#include "model/machine_model.hpp"

namespace sg {

struct machine_settings {
  std::string device;                // "" and "auto": the environment's or the library's choice
  std::int32_t compute_lanes = 0;    // 0: the model's
  std::int32_t staging_threads = 0;  // of all devices; 0: the models'
  std::int64_t memory_limit = 0;     // of each device; 0: the model's
  bool tune = false;                 // time kernels and keep the fastest
};

struct opened_machine {
  std::vector<std::shared_ptr<device>> devices;  // of one backend
  machine_model model;                           // with the settings applied, and a number of staging workers
};

// Copies between devices are prepared, and links whose data arrives wrong are left out. Throws sg::error.
opened_machine open_machine(const machine_settings &settings);

}  // namespace sg
