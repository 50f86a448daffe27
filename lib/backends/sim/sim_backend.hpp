// SPDX-License-Identifier: Apache-2.0
// The simulated GPU: a device with its own memory, real arithmetic and virtual time, and faults on demand. Device
// names: device_name.hpp.
#pragma once

#include <streamgemm/backend.h>

// The table of the sim backend; it lives as long as the process.
extern "C" const sg_backend_ops *sg_sim_backend(void);
