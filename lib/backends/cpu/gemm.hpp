// SPDX-License-Identifier: Apache-2.0
// A gemm command on a worker: its items one after the other.
#pragma once

#include "kernel.hpp"

namespace sg::cpu {

// Whether it is long enough to be computed in parts, between which it looks whether it is to stop.
bool is_long(const sg_backend_gemm &gemm) noexcept;

// A long product is computed in parts, between which it ends as SG_STATUS_CANCELLED when the workspace says so. `following`: what the worker multiplies next, where that is known, or NULL.
sg_status run_gemm(const sg_backend_gemm &gemm, const sg_backend_gemm *following, workspace &space) noexcept;

}  // namespace sg::cpu
