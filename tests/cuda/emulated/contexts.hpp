// SPDX-License-Identifier: Apache-2.0
// The device's one context, and the state of each thread: its latest error, and the contexts it has pushed.
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
inline std::atomic<long> g_retained{0};
inline char g_context;
inline const auto the_context = reinterpret_cast<CUcontext>(&g_context);

}  // namespace emulated
