// SPDX-License-Identifier: Apache-2.0
// The device model of a GPU: measured figures if the chip is known, otherwise derived from its properties.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace sg::cuda {

// The device model as JSON (docs/device-model.md). Throws std::bad_alloc.
std::string model_of(int ordinal, const cudaDeviceProp &facts);

}  // namespace sg::cuda
