// SPDX-License-Identifier: Apache-2.0
// Copies and reductions on a worker.
#pragma once

#include <streamgemm/backend.h>

namespace sg::cpu {

void run_copy(const sg_backend_copy &copy) noexcept;
void run_reduce(const sg_backend_reduce &reduce) noexcept;

}  // namespace sg::cpu
