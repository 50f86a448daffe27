// SPDX-License-Identifier: Apache-2.0
// The device model of a GPU: figures measured where the chip is known, derived from its data otherwise.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace sg::cuda {

// The device model as JSON (docs/device-model.md). Throws std::bad_alloc.
std::string model_of(int ordinal, const cudaDeviceProp &facts);

}  // namespace sg::cuda
