// SPDX-License-Identifier: Apache-2.0
// The text of this thread's latest failure, and what the statuses of CUDA mean here.
#pragma once

#include <cuda_runtime_api.h>
#include <streamgemm/backend.h>

namespace sg::cuda {

// This thread's text, SG_BACKEND_MESSAGE_SIZE bytes.
char *failure_text() noexcept;

// Keeps the text for this thread and returns the status.
__attribute__((format(printf, 2, 3))) sg_status fail(sg_status status, const char *format, ...) noexcept;

sg_status status_of(cudaError_t error) noexcept;

// Whether the event has happened: cudaSuccess, cudaErrorNotReady or a failure. That it has not is no error for this
// thread's next launch to answer with, which it may be where only cudaEventQuery is called.
cudaError_t state_of(cudaEvent_t event) noexcept;

// After one of these the context is lost: every later call on it answers the same.
bool is_sticky(cudaError_t error) noexcept;

}  // namespace sg::cuda
