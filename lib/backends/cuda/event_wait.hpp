// SPDX-License-Identifier: Apache-2.0
// Waits for events on a thread that has nothing else to do.
//
// An event that a thread can sleep on interrupts the host when it happens, whether somebody sleeps or not. On an H200
// those behind staged copies, two hundred in 16 ms, took half of the core that their interrupts went to, and with it
// half of a staging worker (no record is kept). So the events that are recorded interrupt nobody: the thread looks at
// them at short intervals, and only behind one that takes long it enqueues another, in a stream of its own, and sleeps
// on that.
#pragma once

#include <cuda_runtime_api.h>

namespace sg::cuda {

class event_wait {
 public:
  event_wait() = default;
  event_wait(const event_wait &) = delete;
  event_wait &operator=(const event_wait &) = delete;

  // Until the event, which was made without cudaEventBlockingSync, has happened: cudaSuccess, or what failed. The
  // device's context is current, and stays the same from call to call.
  cudaError_t wait(cudaEvent_t event) noexcept;
  void free() noexcept;  // what wait() has made; not while it runs

 private:
  bool make() noexcept;
  cudaError_t sleep_on(cudaEvent_t event) noexcept;

  cudaStream_t behind_ = nullptr;
  cudaEvent_t interrupts_ = nullptr;
};

}  // namespace sg::cuda
