// SPDX-License-Identifier: Apache-2.0
// The operations of conv.h, on one thread.
#pragma once

#include <streamgemm/backend.h>

#include "backends/cpu/worker/workspace.hpp"

namespace sg::cpu {

// SG_STATUS_CANCELLED if the workspace is stopped, which is polled now and then.
sg_status run_im2col(const sg_backend_im2col &what, workspace &space) noexcept;
sg_status run_col2im(const sg_backend_col2im &what, workspace &space) noexcept;

// With oneDNN only (onednn_conv.cpp): images without gaps.
bool has_conv(const sg_backend_conv &what) noexcept;
sg_status run_conv(const sg_backend_conv &what, workspace &space) noexcept;

}  // namespace sg::cpu
