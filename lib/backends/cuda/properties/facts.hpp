// SPDX-License-Identifier: Apache-2.0
// A GPU's place among others: the slice of a chip that it is, and the way to its peers.
#pragma once

#include <cuda_runtime_api.h>
#include <streamgemm/backend.h>

namespace sg::cuda {

void describe(int ordinal, const cudaDeviceProp &properties, sg_backend_facts &out) noexcept;

}  // namespace sg::cuda
