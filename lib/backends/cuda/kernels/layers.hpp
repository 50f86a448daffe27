// SPDX-License-Identifier: Apache-2.0
// The kernels of commands, each in the file of its operation. A library, the driver or the caller runs the others:
// copies, GEMMs, convolutions and custom operations.
#pragma once

#include <cuda_runtime_api.h>
#include <streamgemm/backend.h>

namespace sg::cuda {

#define SG_LAUNCH(NAME, KIND, TITLE) cudaError_t launch_##NAME(const sg_backend_##NAME &what, cudaStream_t in) noexcept;
SG_BACKEND_COMMANDS(SG_LAUNCH)
#undef SG_LAUNCH

}  // namespace sg::cuda
