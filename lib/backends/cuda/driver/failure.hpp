// SPDX-License-Identifier: Apache-2.0
// The text of this thread's latest failure, and the mapping of CUDA's errors to statuses.
#pragma once

#include <cuda_runtime_api.h>
#include <streamgemm/backend.h>

namespace sg::cuda {

// This thread's text, SG_BACKEND_MESSAGE_SIZE bytes.
char *failure_text() noexcept;

// Stores the text for this thread and returns the status.
__attribute__((format(printf, 2, 3))) sg_status fail(sg_status status, const char *format, ...) noexcept;

sg_status status_of(cudaError_t error) noexcept;

// Whether the event has happened: cudaSuccess, cudaErrorNotReady or a failure. Clears cudaErrorNotReady, which this
// thread's next launch would otherwise report.
cudaError_t state_of(cudaEvent_t event) noexcept;
// The same of a stream: whether its commands so far have completed.
cudaError_t state_of(cudaStream_t stream) noexcept;

// Errors that lose the context: every later call on it fails with them.
bool is_sticky(cudaError_t error) noexcept;
// Of these, those that lose all contexts of the process.
bool loses_process(cudaError_t error) noexcept;
// The server of MPS accepts no client, or not this one.
bool is_refused_by_mps(cudaError_t error) noexcept;

}  // namespace sg::cuda
