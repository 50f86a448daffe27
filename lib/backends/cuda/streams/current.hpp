// SPDX-License-Identifier: Apache-2.0
// Makes a device's primary context the calling thread's current one, and gives the caller's own back afterwards. Until
// then no capture of another thread's, which may forbid every thread most calls (cudaStreamCaptureModeGlobal), meets
// those of this one: they concern streams of the library's, or what the caller asks for.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace sg::cuda {

// The driver's functions; found through the runtime, so that nothing is linked that a machine without a driver lacks.
struct driver_functions {
  decltype(&cuDevicePrimaryCtxRetain) retain;
  decltype(&cuDevicePrimaryCtxRelease_v2) release;
  decltype(&cuCtxGetCurrent) get_current;
  decltype(&cuCtxPushCurrent_v2) push;
  decltype(&cuCtxPopCurrent_v2) pop;
  decltype(&cuThreadExchangeStreamCaptureMode) exchange_capture_mode;
};

// Those of green contexts, which a driver may lack.
struct partition_functions {
  decltype(&cuDeviceGetDevResource) resource;
  decltype(&cuDevSmResourceSplitByCount) split;
  decltype(&cuDevResourceGenerateDesc) describe;
  decltype(&cuGreenCtxCreate) create;
  decltype(&cuGreenCtxDestroy) destroy;
  decltype(&cuGreenCtxStreamCreate) create_stream;
};

// False with a reason (at most `size` bytes) where the driver lacks one. Any thread.
bool load_driver(char *reason, std::uint64_t size) noexcept;
// What load_driver() has found.
const driver_functions &driver() noexcept;
// nullptr where it lacks one. Any thread.
const partition_functions *partitions() noexcept;

// By the driver alone: what a thread gives back at the process's end it may give back when the runtime, which would
// crash, is gone.
class current {
 public:
  explicit current(CUcontext wanted) noexcept {
    CUcontext now = nullptr;
    driver().get_current(&now);
    pushed_ = now != wanted && driver().push(wanted) == CUDA_SUCCESS;
    driver().exchange_capture_mode(&capture_mode_);
  }
  ~current() {
    driver().exchange_capture_mode(&capture_mode_);
    CUcontext gone;
    if (pushed_) driver().pop(&gone);
  }
  current(const current &) = delete;
  current &operator=(const current &) = delete;

 private:
  bool pushed_;
  CUstreamCaptureMode capture_mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // then the thread's own
};

}  // namespace sg::cuda
