// SPDX-License-Identifier: Apache-2.0
// Convolutions in which each group has one channel, as a kernel of its own: cuDNN has none that adds a bias before the
// one rounding, and its matrices of windows would be of one column.
#pragma once

#include <cuda_runtime_api.h>
#include <streamgemm/backend.h>

#include "backends/common/types.hpp"

namespace sg::cuda {

inline bool is_depthwise(const sg_backend_conv &c) noexcept {
  return c.gradient == SG_BACKEND_CONV_OF_Y && c.of.groups > 1 && c.of.groups == c.of.channels && c.of.images > 0 &&
         (c.type == SG_DTYPE_F64 || c.type == SG_DTYPE_F32 || is_short_float(c.type));
}
cudaError_t launch_conv_depthwise(const sg_backend_conv &what, cudaStream_t in) noexcept;

}  // namespace sg::cuda
