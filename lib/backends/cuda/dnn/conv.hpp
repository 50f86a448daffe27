// SPDX-License-Identifier: Apache-2.0
// Convolutions of whole images and their gradients by cuDNN. Without it, and for the shapes that it does not have, the
// core uses matrices of windows and GEMMs.
#pragma once

#include <streamgemm/backend.h>

#include "backends/cuda/dnn/executables.hpp"

namespace sg::cuda {

class call_stream;
class gpu;

bool supports_conv(gpu &on, dnn::executable_cache &known, const sg_backend_conv &what) noexcept;
sg_status run_conv(call_stream &in, dnn::stream_resources &by, const sg_backend_conv &what) noexcept;

}  // namespace sg::cuda
