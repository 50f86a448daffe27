// SPDX-License-Identifier: Apache-2.0
// A GPU that this machine does not have, to run the plugin's host code on: CUDA's runtime and cuBLAS, as far as the
// plugin uses them, over host memory. Each stream is a thread, and streams are ordered only by the commands that order
// them on a GPU, so the thread sanitizer sees most missing orderings (not all: an enqueue takes the stream's lock).
// Device memory comes from the allocator, so the address sanitizer sees use after free. Commands on memory that a GPU
// could not reach, or not at that alignment, lose the device. It computes exactly and does not model speed. Destroying
// a stream waits for its commands.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <initializer_list>

#pragma GCC visibility push(default)
namespace emulated {

enum class call {
  plain,       // needs the device's context
  anywhere,    // does not
  allocation,  // may find no memory
  command,     // enqueues
};

// Start of every emulated CUDA function: the device exists, its context is current, and the call is not one that must
// fail. The result is also this thread's latest error.
cudaError_t enter(call kind) noexcept;
cudaError_t refuse(cudaError_t error) noexcept;  // stores it as this thread's latest error, and returns it

// Objects that live until they are destroyed; those of a lost device stay reachable, as on a GPU.
void keep(void *object);
void drop(void *object);

// Whether the device reaches all of these: its own memory, or pinned. Otherwise it is lost.
cudaError_t reach(cudaStream_t in, std::initializer_list<const void *> memory);

// A command accesses memory that is not aligned to the access: the device is lost.
cudaError_t misaligned(bool within_command) noexcept;

// A command of the stream, or of the graph that is captured from it.
cudaError_t enqueue(cudaStream_t in, std::function<void()> work);

}  // namespace emulated
#pragma GCC visibility pop
