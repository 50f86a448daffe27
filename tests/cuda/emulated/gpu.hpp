// SPDX-License-Identifier: Apache-2.0
// A GPU that this machine does not have, for the plugin's host code to run on: CUDA's runtime and cuBLAS, as far as the
// plugin uses them, over host memory. Each stream is a thread, and streams are ordered by what orders them on a GPU and
// by nothing else, so the thread sanitizer sees what has been left unordered; device memory is the allocator's, so the
// address sanitizer sees what is used after it was freed. What a GPU forbids is an error here. It computes exactly and
// says nothing of speed.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace emulated __attribute__((visibility("default"))) {

enum class call {
  plain,       // needs the device's context
  anywhere,    // does not
  allocation,  // may find no memory
  command,     // enqueues
};

// What every function of CUDA's begins with: the device is there, its context is current, and the call is not one that
// is to fail. The answer is this thread's latest error, too.
cudaError_t enter(call kind) noexcept;
cudaError_t refuse(cudaError_t error) noexcept;  // makes it this thread's latest error, and hands it back

// Objects that live until they are destroyed; those that a lost device keeps stay reachable, as a GPU's would.
void keep(void *object);
void drop(void *object);

// A command of the stream's, or of the graph that is captured from it.
cudaError_t enqueue(cudaStream_t in, std::function<void()> work);

}  // namespace emulated
