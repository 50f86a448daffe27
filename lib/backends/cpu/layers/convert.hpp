// SPDX-License-Identifier: Apache-2.0
// The operations of convert.h, on one thread.
#pragma once

#include <streamgemm/backend.h>

#include "backends/cpu/worker/workspace.hpp"

namespace sg::cpu {

// SG_STATUS_CANCELLED if the workspace is stopped, which is polled now and then.
sg_status run_dequantize(const sg_backend_dequantize &what, workspace &space) noexcept;
sg_status run_convert(const sg_backend_convert &what, workspace &space) noexcept;

}  // namespace sg::cpu
