// SPDX-License-Identifier: Apache-2.0
// Steps of recurrent cells, on one thread.
#pragma once

#include <streamgemm/backend.h>

#include "backends/cpu/worker/workspace.hpp"

namespace sg::cpu {

// SG_STATUS_CANCELLED if the workspace is stopped, which is polled now and then.
sg_status run_cell(const sg_backend_cell &what, workspace &space) noexcept;
sg_status run_cell_backward(const sg_backend_cell_backward &what, workspace &space) noexcept;

}  // namespace sg::cpu
