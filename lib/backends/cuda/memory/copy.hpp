// SPDX-License-Identifier: Apache-2.0
// Copies between host and device.
#pragma once

#include "backends/cuda/memory/call_stream.hpp"

namespace sg::cuda {

bool is_within_device(const sg_backend_copy &what) noexcept;
// Enqueues a copy. Blocks only for pageable host memory.
sg_status run_copy(call_stream &in, const sg_backend_copy &what) noexcept;

}  // namespace sg::cuda
