// SPDX-License-Identifier: Apache-2.0
// The operation of gather.h, on one thread.
#pragma once

#include <streamgemm/backend.h>

#include "backends/cpu/worker/workspace.hpp"

namespace sg::cpu {

// SG_STATUS_CANCELLED if the workspace is stopped, which is polled now and then.
sg_status run_gather(const sg_backend_gather &what, workspace &space) noexcept;

}  // namespace sg::cpu
