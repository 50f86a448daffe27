// SPDX-License-Identifier: Apache-2.0
// A GPU that this machine does not have, for the plugin's host code to run on: CUDA's runtime and cuBLAS, as far as the
// plugin uses them, over host memory. Each stream is a thread, and no command orders streams but those that do on a
// GPU, so the thread sanitizer sees much of what has been left unordered (not all: who enqueues takes the stream's
// lock). Device memory is the allocator's, so the address sanitizer sees what is used after it was freed. Commands on
// memory that a GPU could not reach lose the device. It computes exactly and says nothing of speed. A stream's end
// waits for its commands.
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

// What every function of CUDA's begins with: the device is there, its context is current, and the call is not one that
// is to fail. The answer is this thread's latest error, too.
cudaError_t enter(call kind) noexcept;
cudaError_t refuse(cudaError_t error) noexcept;  // makes it this thread's latest error, and hands it back

// Objects that live until they are destroyed; those that a lost device keeps stay reachable, as a GPU's would.
void keep(void *object);
void drop(void *object);

// Whether the device reaches all of these: memory of its own, of the graph that is captured, or pinned. Otherwise it is
// lost.
cudaError_t reach(cudaStream_t in, std::initializer_list<const void *> memory);

// A command of the stream's, or of the graph that is captured from it.
cudaError_t enqueue(cudaStream_t in, std::function<void()> work);

}  // namespace emulated
#pragma GCC visibility pop
