// SPDX-License-Identifier: Apache-2.0
// The primary contexts of the devices, and the state of each thread: its latest error, and the contexts it has pushed.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>

namespace emulated {

inline thread_local constinit cudaError_t t_latest = cudaSuccess;
// Not a vector: the library may need it at thread exit, after the destructor of a vector would have run.
struct context_stack {
  CUcontext all[16];
  int size;
  CUcontext current() const { return size == 0 ? nullptr : all[size - 1]; }
};
inline thread_local constinit context_stack t_contexts{};
constexpr int most_gpus = 4;
inline std::atomic<long> g_retained[most_gpus];
inline char g_contexts[most_gpus];
inline CUcontext context_of(int device) { return reinterpret_cast<CUcontext>(&g_contexts[device]); }
// The device of this thread's current context; -1: none is current.
inline int current_device() {
  for (int i = 0; i < most_gpus; ++i)
    if (t_contexts.current() == context_of(i)) return i;
  return -1;
}

}  // namespace emulated
