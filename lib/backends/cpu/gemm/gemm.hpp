// SPDX-License-Identifier: Apache-2.0
// A GEMM command on one thread, item by item.
#pragma once

#include "kernel.hpp"

namespace sg::cpu {

// A long GEMM is computed in parts; between two of them it stops with SG_STATUS_CANCELLED if the workspace is stopped.
// `following`: the next GEMM of the worker, if known, or NULL.
sg_status run_gemm(const sg_backend_gemm &gemm, const sg_backend_gemm *following, workspace &space) noexcept;

}  // namespace sg::cpu
