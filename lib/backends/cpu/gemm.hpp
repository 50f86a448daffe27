// SPDX-License-Identifier: Apache-2.0
// A gemm command on a worker: its items one after the other.
#pragma once

#include "kernel.hpp"

namespace sg::cpu {

sg_status run_gemm(const sg_backend_gemm &gemm, workspace &space) noexcept;

}  // namespace sg::cpu
