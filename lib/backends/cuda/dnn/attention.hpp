// SPDX-License-Identifier: Apache-2.0
// Attention of f16 and bf16 and its gradients by cuDNN's fused kernels.
#pragma once

#include <streamgemm/backend.h>

#include "backends/cuda/dnn/executables.hpp"

namespace sg::cuda {

class call_stream;
class gpu;

bool supports_by_dnn(gpu &on, dnn::executable_cache &known, const sg_backend_attention &what) noexcept;
bool supports_by_dnn(gpu &on, dnn::executable_cache &known, const sg_backend_attention_backward &what) noexcept;
// Whether the command is enqueued; otherwise another kernel is to compute it.
bool run_by_dnn(call_stream &in, dnn::stream_resources &by, const sg_backend_attention &what,
                sg_status &status) noexcept;
sg_status run_by_dnn(call_stream &in, dnn::stream_resources &by, const sg_backend_attention_backward &what) noexcept;

}  // namespace sg::cuda
