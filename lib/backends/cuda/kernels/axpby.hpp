// SPDX-License-Identifier: Apache-2.0
// Scale and add. cuBLAS's geam lacks activations and types of 16 bits.
#pragma once

#include <cuda_runtime_api.h>
#include <streamgemm/backend.h>

namespace sg::cuda {

cudaError_t launch_axpby(const sg_backend_axpby &what, cudaStream_t in) noexcept;

}  // namespace sg::cuda
