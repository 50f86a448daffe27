// SPDX-License-Identifier: Apache-2.0
// A gemm command on a worker: its items one after the other.
#pragma once

#include "kernel.hpp"

namespace sg::cpu {

// `following`: what the worker multiplies next, where that is known, or NULL.
sg_status run_gemm(const sg_backend_gemm &gemm, const sg_backend_gemm *following, workspace &space) noexcept;

}  // namespace sg::cpu
