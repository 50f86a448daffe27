// SPDX-License-Identifier: Apache-2.0
// Copies and reductions on a worker.
#pragma once

#include <streamgemm/backend.h>

#include "backends/cpu/worker/workspace.hpp"

namespace sg::cpu {

void run_copy(const sg_backend_copy &copy) noexcept;
sg_status run_reduce(const sg_backend_reduce &reduce, workspace &space) noexcept;

}  // namespace sg::cpu
