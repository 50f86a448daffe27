// SPDX-License-Identifier: Apache-2.0
// The operations of layers.h, on one thread.
#pragma once

#include <streamgemm/backend.h>

#include "backends/cpu/worker/workspace.hpp"

namespace sg::cpu {

// SG_STATUS_CANCELLED if the workspace is stopped, which is polled now and then.
sg_status run_elementwise(const sg_backend_elementwise &what, workspace &space) noexcept;
sg_status run_softmax(const sg_backend_softmax &what, workspace &space) noexcept;
sg_status run_softmax_backward(const sg_backend_softmax_backward &what, workspace &space) noexcept;
sg_status run_norm(const sg_backend_norm &what, workspace &space) noexcept;
sg_status run_rotary(const sg_backend_rotary &what, workspace &space) noexcept;

}  // namespace sg::cpu
