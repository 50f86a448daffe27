// SPDX-License-Identifier: Apache-2.0
// A GPU's MIG slice, and its links to peers.
#pragma once

#include <cuda_runtime_api.h>
#include <streamgemm/backend.h>

namespace sg::cuda {

void describe(int ordinal, const cudaDeviceProp &properties, sg_backend_facts &out) noexcept;

}  // namespace sg::cuda
